// ELF64 parsing down to the one note. Reads the file piece by piece, so that neither a huge plugin nor one that is cut
// short while we look at it costs time or a SIGBUS.
#include "core/plugin/identity_note.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>

#include "cairn/abi.h"
#include "core/base/error.hpp"
#include "core/plugin/file_descriptor.hpp"
#include "core/plugin/refusal.hpp"

namespace cairn {

namespace {

static_assert(std::endian::native == std::endian::little);

// All note bytes of one file that are looked at. Real plugins have under a kilobyte of notes besides ours.
constexpr std::uint64_t kMaxNoteBytes = std::uint64_t{1} << 20;

// Random access to a file's bytes.
class Source {
 public:
  explicit Source(std::uint64_t size) : size_(size) {}
  virtual ~Source() = default;
  std::uint64_t size() const { return size_; }
  // Copies [offset, offset + size) to `to`, or returns false when that is not all inside the file.
  bool read(std::uint64_t offset, void* to, std::uint64_t size) const {
    if (offset > size_ || size > size_ - offset) return false;
    return size == 0 || read_inside(offset, to, size);
  }

 protected:
  virtual bool read_inside(std::uint64_t offset, void* to, std::uint64_t size) const = 0;

 private:
  std::uint64_t size_;
};

class MemorySource final : public Source {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : Source(bytes.size()), bytes_(bytes) {}

 protected:
  bool read_inside(std::uint64_t offset, void* to, std::uint64_t size) const override {
    std::memcpy(to, bytes_.data() + offset, size);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
};

class FileSource final : public Source {
 public:
  FileSource(int fd, std::uint64_t size) : Source(size), fd_(fd) {}

 protected:
  bool read_inside(std::uint64_t offset, void* to, std::uint64_t size) const override {
    auto* at = static_cast<char*>(to);
    while (size > 0) {
      const ssize_t got = ::pread(fd_, at, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      size -= static_cast<std::uint64_t>(got);
    }
    return true;
  }

 private:
  int fd_;
};

bool is_utf8_without_controls(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7F) return false;
    const int more = lead < 0x80                   ? 0
                     : lead >= 0xC2 && lead < 0xE0 ? 1
                     : lead >= 0xE0 && lead < 0xF0 ? 2
                     : lead >= 0xF0 && lead < 0xF5 ? 3
                                                   : -1;
    if (more < 0 || i + static_cast<std::size_t>(more) >= text.size()) return false;
    std::uint32_t code = more == 0 ? lead : lead & (0x3FU >> more);
    for (int k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if ((next & 0xC0U) != 0x80U) return false;
      code = code << 6 | (next & 0x3FU);
    }
    const bool overlong = (more == 2 && code < 0x800) || (more == 3 && (code < 0x10000 || code > 0x10FFFF));
    const bool control = (code >= 0x80 && code < 0xA0) || (code >= 0xD800 && code < 0xE000);
    if (overlong || control) return false;
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) result.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

class NoteParser {
 public:
  NoteParser(const Source& source, std::string_view name) : source_(source), name_(name) {}

  PluginIdentity parse() {
    Elf64_Ehdr header;
    if (!source_.read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
      fail("it is not an ELF shared object");
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
      fail("it is not a 64-bit little-endian ELF file");
    }
    if (header.e_type != ET_DYN) fail("it is an ELF file but not a shared object");
    if (auto identity = from_segments(header)) return *identity;
    if (auto identity = from_sections(header)) return *identity;
    fail("it carries no Cairn identity note");
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const { throw BadFile(unreadable_plugin_text(name_, problem)); }

  std::optional<PluginIdentity> from_segments(const Elf64_Ehdr& header) {
    if (header.e_phentsize != sizeof(Elf64_Phdr)) return std::nullopt;
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (header.e_phoff > source_.size() ||
          !source_.read(header.e_phoff + i * sizeof segment, &segment, sizeof segment)) {
        fail("its program headers lie outside the file; it is cut short");
      }
      if (segment.p_type != PT_NOTE) continue;
      if (auto identity = from_notes(segment.p_offset, segment.p_filesz, segment.p_align)) return identity;
    }
    return std::nullopt;
  }

  std::optional<PluginIdentity> from_sections(const Elf64_Ehdr& header) {
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (header.e_shoff > source_.size() ||
          !source_.read(header.e_shoff + i * sizeof section, &section, sizeof section)) {
        fail("its section headers lie outside the file; it is cut short");
      }
      if (section.sh_type != SHT_NOTE) continue;
      if (auto identity = from_notes(section.sh_offset, section.sh_size, section.sh_addralign)) return identity;
    }
    return std::nullopt;
  }

  // Walks the notes of [offset, offset + size).
  std::optional<PluginIdentity> from_notes(std::uint64_t offset, std::uint64_t size, std::uint64_t align) {
    if (offset > source_.size() || size > source_.size() - offset) {
      fail("a note segment lies outside the file; it is cut short");
    }
    if (size > kMaxNoteBytes - budget_used_) fail("it has more than 1 MiB of notes");
    budget_used_ += size;
    const std::uint64_t pad = align == 8 ? 8 : 4;
    std::uint64_t at = 0;  // all below kMaxNoteBytes + 2^33, so no sum overflows
    while (at + sizeof(Elf64_Nhdr) <= size) {
      Elf64_Nhdr note;
      if (!source_.read(offset + at, &note, sizeof note)) fail("it became shorter while it was read");
      const std::uint64_t name_at = at + sizeof note;
      const std::uint64_t text_at = (name_at + note.n_namesz + pad - 1) / pad * pad;
      const std::uint64_t end = text_at + note.n_descsz;
      if (end > size) return std::nullopt;  // not a chain of notes any more
      if (note.n_type == CAIRN_NOTE_TYPE && note.n_namesz == sizeof(CAIRN_NOTE_OWNER)) {
        char owner[sizeof(CAIRN_NOTE_OWNER)];
        if (!source_.read(offset + name_at, owner, sizeof owner)) fail("it became shorter while it was read");
        if (std::memcmp(owner, CAIRN_NOTE_OWNER, sizeof owner) == 0) {
          return from_identity(offset + text_at, note.n_descsz);
        }
      }
      at = (end + pad - 1) / pad * pad;
    }
    return std::nullopt;
  }

  PluginIdentity from_identity(std::uint64_t offset, std::uint64_t size) const {
    constexpr std::uint64_t kNumbers = offsetof(cairn_identity, id);
    cairn_identity raw{};
    if (size < kNumbers) fail(fmt::format("its identity note is only {} bytes long", size));
    if (!source_.read(offset, &raw, std::min<std::uint64_t>(size, sizeof raw))) {
      fail("it became shorter while it was read");
    }
    if (raw.magic != CAIRN_NOTE_MAGIC) {
      fail(fmt::format("its identity note begins with {:#010x} instead of {:#010x}", raw.magic, CAIRN_NOTE_MAGIC));
    }
    if (raw.note_size < kNumbers || raw.note_size > size) {
      fail(fmt::format("its identity note claims {} bytes and has {}", raw.note_size, size));
    }
    if (raw.note_size < sizeof raw) {
      std::memset(reinterpret_cast<char*>(&raw) + raw.note_size, 0, sizeof raw - raw.note_size);
    }
    PluginIdentity identity;
    identity.note_size = raw.note_size;
    identity.abi_major = raw.abi_major;
    identity.built_minor = raw.built_minor;
    identity.min_host_minor = raw.min_host_minor;
    identity.flags = raw.flags;
    identity.id = text(raw.id, "id");
    identity.version = text(raw.version, "version");
    identity.vendor = text(raw.vendor, "vendor");
    identity.build = text(raw.build, "build");
    identity.target = text(raw.target, "target");
    identity.cpu_features = words(text(raw.cpu_features, "cpu_features"));
    identity.device_runtime = text(raw.device_runtime, "device_runtime");
    identity.interfaces = words(text(raw.interfaces, "interfaces"));
    identity.optional_interfaces = words(text(raw.optional_interfaces, "optional_interfaces"));
    identity.architectures = words(text(raw.architectures, "architectures"));
    identity.toolchain = text(raw.toolchain, "toolchain");
    if (identity.id.empty()) fail("its identity note has an empty id");
    return identity;
  }

  template <std::size_t N>
  std::string text(const char (&field)[N], std::string_view what) const {
    const std::string_view value(field, strnlen(field, N));
    if (!is_utf8_without_controls(value)) {
      fail(fmt::format("the field '{}' of its identity note is not printable UTF-8", what));
    }
    return std::string(value);
  }

  const Source& source_;
  std::string_view name_;
  std::uint64_t budget_used_ = 0;
};

}  // namespace

PluginIdentity parse_identity_note(std::span<const std::byte> file, std::string_view name) {
  const MemorySource source(file);
  return NoteParser(source, name).parse();
}

PluginIdentity read_identity_note(int fd, std::string_view name) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    throw BadFile(unreadable_plugin_text(name, "it is not a regular file"));
  }
  if (static_cast<std::uint64_t>(info.st_size) > kMaxPluginBytes) {
    throw BadFile(unreadable_plugin_text(name, "it is over 4 GiB long"));
  }
  const FileSource source(fd, static_cast<std::uint64_t>(info.st_size));
  return NoteParser(source, name).parse();
}

PluginIdentity read_identity_note(const std::filesystem::path& file) {
  const FileDescriptor fd = open_plugin_file(file);
  return read_identity_note(fd.get(), file.string());
}

}  // namespace cairn
