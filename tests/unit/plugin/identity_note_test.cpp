// Reading the identity note from ELF files, whole ones and damaged ones.
#include "core/plugin/identity_note.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <string>

#include "cairn/abi.h"
#include "core/base/error.hpp"
#include "sample_files.hpp"

namespace cairn {
namespace {

// Where the note's description begins in the file.
std::size_t note_at(const std::vector<std::byte>& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t id = text.find("ai.cairn.sample");
  EXPECT_NE(id, std::string_view::npos);
  return id - offsetof(cairn_identity, id);
}

template <class T>
T get(const std::vector<std::byte>& file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}
template <class T>
void put(std::vector<std::byte>& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

std::string refusal(const std::vector<std::byte>& file) {
  return thrown_text<BadFile>([&] { parse_identity_note(file, "x.so"); });
}

TEST(IdentityNote, ReadsEveryField) {
  const PluginIdentity identity = read_identity_note(sample("good"));
  EXPECT_EQ(identity.note_size, sizeof(cairn_identity));
  EXPECT_EQ(identity.abi_major, 1U);
  EXPECT_EQ(identity.min_host_minor, 0U);
  EXPECT_EQ(identity.flags, static_cast<std::uint32_t>(CAIRN_IDENTITY_UNLOADABLE));
  EXPECT_EQ(identity.id, "ai.cairn.sample");
  EXPECT_EQ(identity.version, "1.2.3");
  EXPECT_EQ(identity.vendor, "Cairn tests");
  EXPECT_EQ(identity.build, "test");
  EXPECT_EQ(identity.target, CAIRN_TARGET_TRIPLE);
  EXPECT_TRUE(identity.cpu_features.empty());
  EXPECT_EQ(identity.device_runtime, "");
  EXPECT_EQ(identity.interfaces, (std::vector<std::string>{"cairn.log/1", "cairn.status/1"}));
  EXPECT_EQ(identity.optional_interfaces, (std::vector<std::string>{"cairn.ops/1"}));
  EXPECT_EQ(identity.architectures, (std::vector<std::string>{"sample", "other"}));
  EXPECT_FALSE(identity.toolchain.empty());
}

TEST(IdentityNote, IsFoundThroughTheSectionsWhenTheProgramHeadersNameNone) {
  auto file = read_bytes(sample("good"));
  const auto header = get<Elf64_Ehdr>(file, 0);
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    auto segment = get<Elf64_Phdr>(file, at);
    if (segment.p_type == PT_NOTE) segment.p_type = PT_NULL;
    put(file, at, segment);
  }
  EXPECT_EQ(parse_identity_note(file, "x.so").id, "ai.cairn.sample");
}

TEST(IdentityNote, AnOlderShorterNoteReadsAsZeros) {
  auto file = read_bytes(sample("good"));
  const std::size_t at = note_at(file);
  put<std::uint32_t>(file, at + offsetof(cairn_identity, note_size), offsetof(cairn_identity, architectures));
  const PluginIdentity identity = parse_identity_note(file, "x.so");
  EXPECT_EQ(identity.id, "ai.cairn.sample");
  EXPECT_EQ(identity.optional_interfaces.size(), 1U);
  EXPECT_TRUE(identity.architectures.empty());
  EXPECT_EQ(identity.toolchain, "");
}

// An ELF file with one program header and a note of `size` bytes of description, as a newer header would emit it.
TEST(IdentityNote, ANewerLongerNoteIsCut) {
  const std::uint32_t size = sizeof(cairn_identity) + 40;
  std::vector<std::byte> file(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + 20 + size);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  put(file, 0, header);
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = 20 + size;
  segment.p_align = 4;
  put(file, sizeof header, segment);
  const std::size_t note = segment.p_offset;
  put<std::uint32_t>(file, note, 6);
  put<std::uint32_t>(file, note + 4, size);
  put<std::uint32_t>(file, note + 8, CAIRN_NOTE_TYPE);
  std::memcpy(file.data() + note + 12, "Cairn", 6);
  cairn_identity identity{};
  identity.magic = CAIRN_NOTE_MAGIC;
  identity.note_size = size;
  identity.abi_major = 9;
  std::memcpy(identity.id, "from.the.future", 15);
  put(file, note + 20, identity);
  EXPECT_EQ(parse_identity_note(file, "x.so").id, "from.the.future");
  EXPECT_EQ(parse_identity_note(file, "x.so").abi_major, 9U);

  put<std::uint32_t>(file, note + 20 + 4, size + 1);
  EXPECT_NE(refusal(file).find("claims 1393 bytes and has 1392"), std::string::npos) << refusal(file);
}

TEST(IdentityNote, EveryTruncationIsRefusedOrReadTheSame) {
  const auto file = read_bytes(sample("good"));
  int read = 0;
  for (std::size_t size = 0; size < file.size(); size += size < 4096 ? 1 : 97) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    try {
      EXPECT_EQ(parse_identity_note(cut, "x.so").id, "ai.cairn.sample");
      ++read;
    } catch (const BadFile&) {
      continue;
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, static_cast<int>(file.size()));
}

TEST(IdentityNote, DamagedNotesAreRefusedWithTheReason) {
  const auto good = read_bytes(sample("good"));
  const std::size_t at = note_at(good);

  auto file = good;
  file[at + offsetof(cairn_identity, version) + 1] = std::byte{0x1B};
  EXPECT_NE(refusal(file).find("field 'version'"), std::string::npos) << refusal(file);
  file = good;
  file[at + offsetof(cairn_identity, vendor)] = std::byte{0xC0};
  EXPECT_NE(refusal(file).find("field 'vendor'"), std::string::npos) << refusal(file);
  file = good;
  file[at + offsetof(cairn_identity, id)] = std::byte{0};
  EXPECT_NE(refusal(file).find("empty id"), std::string::npos) << refusal(file);
  file = good;
  put<std::uint32_t>(file, at + offsetof(cairn_identity, note_size), 3);
  EXPECT_NE(refusal(file).find("claims 3 bytes"), std::string::npos) << refusal(file);
  file = good;
  file[EI_CLASS] = std::byte{ELFCLASS32};
  EXPECT_NE(refusal(file).find("64-bit"), std::string::npos) << refusal(file);
  file = good;
  put<std::uint16_t>(file, offsetof(Elf64_Ehdr, e_type), ET_EXEC);
  EXPECT_NE(refusal(file).find("not a shared object"), std::string::npos) << refusal(file);
}

TEST(IdentityNote, FilesThatAreNoPluginsAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_identity_note(folder.path() / "absent.so"), NotFound);
  EXPECT_THROW(read_identity_note(folder.path()), BadFile);
  write_bytes(folder.path() / "empty.so", {});
  EXPECT_THROW(read_identity_note(folder.path() / "empty.so"), BadFile);
  ASSERT_EQ(::mkfifo((folder.path() / "fifo.so").c_str(), 0600), 0);
  EXPECT_THROW(read_identity_note(folder.path() / "fifo.so"), BadFile);
  EXPECT_NE(thrown_text<BadFile>([] { read_identity_note(sample("no_note")); }).find("no Cairn identity note"),
            std::string::npos);
  EXPECT_NE(thrown_text<BadFile>([] { read_identity_note(sample("wrong_magic")); }).find("0x12345678"),
            std::string::npos);
}

}  // namespace
}  // namespace cairn
