// GgufFile: opening one file or the parts of a split one, and the typed accessors.
#include "core/weights/gguf.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/base/error.hpp"
#include "core/weights/gguf_parser.hpp"
#include "core/weights/mapped_file.hpp"
#include "core/weights/quote_name.hpp"

namespace cairn {

namespace fs = std::filesystem;

struct GgufFile::Contents {
  std::vector<MappedFile> mappings;  // one per part; empty when the bytes are the caller's
  std::string name;
  GgufContents parsed;  // of the first part; its tensors have moved to the base class

  const GgufEntry* find(std::string_view key) const { return parsed.find(key); }

  [[noreturn]] void wrong_kind(const GgufEntry& entry, std::string_view wanted) const {
    std::string found(gguf_value_type_name(entry.type));
    if (const auto* array = std::get_if<GgufArray>(&entry.value)) {
      found = fmt::format("array of {} {} values", array->count, gguf_value_type_name(array->element));
    }
    throw BadFile(fmt::format("{}: key {} at byte {} is of kind {} where {} is needed; convert the model again.", name,
                              quote_name(entry.key), entry.offset, found, wanted));
  }

  const GgufArray* find_array(std::string_view key, std::string_view wanted) const {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) return nullptr;
    const auto* array = std::get_if<GgufArray>(&entry->value);
    if (array == nullptr) wrong_kind(*entry, wanted);
    return array;
  }
};

namespace {

constexpr std::string_view kSplitMarker = "-of-";
constexpr std::size_t kSplitDigits = 5;

struct SplitName {
  std::string prefix;  // "model" of "model-00001-of-00003.gguf"
  unsigned part = 0;   // from 1
  unsigned parts = 0;
};

std::optional<unsigned> five_digits(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != kSplitDigits || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "prefix-00001-of-0000N.gguf", as the format's splitting tool names parts.
std::optional<SplitName> parse_split_name(const std::string& filename) {
  constexpr std::string_view kSuffix = ".gguf";
  constexpr std::size_t kTail = 1 + kSplitDigits + kSplitMarker.size() + kSplitDigits;  // "-00001-of-00003"
  const std::string_view name = filename;
  if (!name.ends_with(kSuffix) || name.size() < kTail + kSuffix.size()) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - kSuffix.size());
  const std::string_view tail = stem.substr(stem.size() - kTail);
  if (tail.front() != '-' || tail.substr(1 + kSplitDigits, kSplitMarker.size()) != kSplitMarker) return std::nullopt;
  const auto part = five_digits(tail.substr(1, kSplitDigits));
  const auto parts = five_digits(tail.substr(tail.size() - kSplitDigits));
  if (!part || !parts) return std::nullopt;
  return SplitName{std::string(stem.substr(0, stem.size() - kTail)), *part, *parts};
}

void append(std::vector<TensorInfo>& all, std::vector<TensorInfo>&& more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// The value of an integer key, or `otherwise`; used for the split keys, which writers give as U16 or I32.
std::int64_t integer_or(const GgufContents& contents, std::string_view key, std::int64_t otherwise) {
  const GgufEntry* entry = contents.find(key);
  const auto* value = entry == nullptr ? nullptr : std::get_if<std::int64_t>(&entry->value);
  return value == nullptr ? otherwise : *value;
}

}  // namespace

GgufFile::GgufFile(const fs::path& path, std::unique_ptr<Contents> contents)
    : WeightsFile(path, path.has_parent_path() ? path.parent_path() : fs::path(".")), contents_(std::move(contents)) {
  adopt_tensors(std::move(contents_->parsed.tensors));
  adopt_metadata(std::move(contents_->parsed.metadata));
}

GgufFile::~GgufFile() = default;

std::shared_ptr<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  auto contents = std::make_unique<Contents>();
  contents->name = name;
  contents->parsed = parse_gguf(bytes, name);
  return std::shared_ptr<GgufFile>(new GgufFile(name, std::move(contents)));
}

std::shared_ptr<GgufFile> GgufFile::open(const fs::path& path) {
  auto contents = std::make_unique<Contents>();
  contents->name = path.string();
  contents->mappings.emplace_back(path);
  contents->parsed = parse_gguf(contents->mappings.back().bytes(), contents->name);

  const std::int64_t parts = integer_or(contents->parsed, "split.count", 1);
  if (parts > 1) {
    const auto split = parse_split_name(path.filename().string());
    if (!split || split->parts != parts) {
      throw BadFile(
          fmt::format("{} is one of {} parts (key \"split.count\"), but is not named like "
                      "\"model-00001-of-{:05}.gguf\"; give the parts their original names.",
                      path.string(), parts, parts));
    }
    if (split->part != 1 || integer_or(contents->parsed, "split.no", 0) != 0) {
      throw BadFile(fmt::format("{} is part {} of {}; open the first part, {}-00001-of-{:05}.gguf.", path.string(),
                                split->part, parts, split->prefix, parts));
    }
    for (unsigned part = 2; part <= split->parts; ++part) {
      const fs::path file =
          path.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", split->prefix, part, split->parts);
      contents->mappings.emplace_back(file);
      GgufContents more = parse_gguf(contents->mappings.back().bytes(), file.string());
      if (integer_or(more, "split.no", -1) != part - 1 || integer_or(more, "split.count", -1) != parts) {
        throw BadFile(
            fmt::format("{} does not say that it is part {} of {} (keys \"split.no\", \"split.count\"); "
                        "download it again.",
                        file.string(), part, parts));
      }
      append(contents->parsed.tensors, std::move(more.tensors));
    }
    const auto expected = integer_or(contents->parsed, "split.tensors.count", -1);
    if (expected >= 0 && static_cast<std::size_t>(expected) != contents->parsed.tensors.size()) {
      throw BadFile(
          fmt::format("{}: the {} parts hold {} tensors where key \"split.tensors.count\" says {}; download "
                      "them again.",
                      path.string(), parts, contents->parsed.tensors.size(), expected));
    }
  }
  return std::shared_ptr<GgufFile>(new GgufFile(path, std::move(contents)));
}

std::string GgufFile::architecture() const {
  const GgufEntry* entry = contents_->find("general.architecture");
  const auto* text = entry == nullptr ? nullptr : std::get_if<std::string_view>(&entry->value);
  return text == nullptr ? std::string() : std::string(*text);
}

bool GgufFile::has(std::string_view key) const {
  return contents_->find(key) != nullptr;
}

const Value* GgufFile::find_value(std::string_view key) const {
  return metadata().find(key);
}

std::optional<std::string_view> GgufFile::str(std::string_view key) const {
  const GgufEntry* entry = contents_->find(key);
  if (entry == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string_view>(&entry->value);
  if (text == nullptr) contents_->wrong_kind(*entry, "a string");
  return *text;
}

std::optional<std::int64_t> GgufFile::i64(std::string_view key) const {
  const GgufEntry* entry = contents_->find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<std::int64_t>(&entry->value)) return *value;
  const auto* value = std::get_if<std::uint64_t>(&entry->value);
  if (value == nullptr || !std::in_range<std::int64_t>(*value))
    contents_->wrong_kind(*entry, "a signed 64-bit integer");
  return static_cast<std::int64_t>(*value);
}

std::optional<std::uint64_t> GgufFile::u64(std::string_view key) const {
  const GgufEntry* entry = contents_->find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<std::uint64_t>(&entry->value)) return *value;
  const auto* value = std::get_if<std::int64_t>(&entry->value);
  if (value == nullptr || *value < 0) contents_->wrong_kind(*entry, "an integer of at least 0");
  return static_cast<std::uint64_t>(*value);
}

std::optional<float> GgufFile::f32(std::string_view key) const {
  const GgufEntry* entry = contents_->find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<double>(&entry->value)) return static_cast<float>(*value);
  if (const auto* value = std::get_if<std::int64_t>(&entry->value)) return static_cast<float>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&entry->value)) return static_cast<float>(*value);
  contents_->wrong_kind(*entry, "a number");
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufEntry* entry = contents_->find(key);
  if (entry == nullptr) return std::nullopt;
  const auto* value = std::get_if<bool>(&entry->value);
  if (value == nullptr) contents_->wrong_kind(*entry, "a boolean");
  return *value;
}

const std::vector<std::string_view>* GgufFile::string_array(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of strings";
  const GgufArray* array = contents_->find_array(key, kWanted);
  if (array == nullptr) return nullptr;
  if (array->element != GgufValueType::kString) contents_->wrong_kind(*contents_->find(key), kWanted);
  return &array->strings;
}

std::optional<std::span<const float>> GgufFile::float_array(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of F32 or F64";
  const GgufArray* array = contents_->find_array(key, kWanted);
  if (array == nullptr) return std::nullopt;
  if (array->floats.size() != array->count) contents_->wrong_kind(*contents_->find(key), kWanted);
  return array->floats;
}

std::optional<std::span<const std::int32_t>> GgufFile::int_array(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of integers of 16 to 64 bits with values that fit in 32";
  const GgufArray* array = contents_->find_array(key, kWanted);
  if (array == nullptr) return std::nullopt;
  if (array->integers.size() != array->count) contents_->wrong_kind(*contents_->find(key), kWanted);
  return array->integers;
}

std::optional<std::span<const std::byte>> GgufFile::byte_array(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of U8, I8 or booleans";
  const GgufArray* array = contents_->find_array(key, kWanted);
  if (array == nullptr) return std::nullopt;
  if (array->bytes.size() != array->count) contents_->wrong_kind(*contents_->find(key), kWanted);
  return array->bytes;
}

}  // namespace cairn
