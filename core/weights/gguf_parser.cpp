// One pass over a GGUF file, top to bottom: header, key/value pairs, tensor records, then the places of the tensors.
// Every count, length and offset is checked against the file before it is used.
#include "core/weights/gguf_parser.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/weights/byte_reader.hpp"
#include "core/weights/quote_name.hpp"

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are read in place, which needs little endian.");

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kMaxKeys = 1U << 16;
constexpr std::uint64_t kMaxKeyLength = 65535;  // the format's own limit
constexpr std::uint64_t kMaxTensors = 1U << 18;
constexpr std::uint64_t kMaxTensorName = 1024;
constexpr std::uint32_t kMaxDims = 4;
constexpr std::uint64_t kMaxArray = 1U << 24;  // elements; the largest vocabularies have about 2^20
constexpr int kMaxNesting = 4;                 // arrays within arrays
constexpr std::uint64_t kMaxAlignment = 1U << 20;
// Elements of arrays kept as Values, in one file: a Value costs about 40 bytes, a file can hold one in a single byte.
constexpr std::uint64_t kMaxValueElements = 1U << 20;

constexpr std::string_view kAlignmentKey = "general.alignment";

// A number of the file type T at an address of any alignment.
template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
bool aligned(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0;
}

template <class T>
void set_integers(GgufArray& array, std::span<const std::byte> raw) {
  const auto fits = [&](std::size_t i) { return std::in_range<std::int32_t>(load<T>(raw.data() + i * sizeof(T))); };
  if constexpr (!std::is_same_v<T, std::int32_t>) {
    for (std::size_t i = 0; i < array.count && !array.misfit; ++i) array.misfit = !fits(i);
    if (array.misfit) return;
  }
  if (sizeof(T) == sizeof(std::int32_t) && aligned<std::int32_t>(raw)) {
    array.integers = {reinterpret_cast<const std::int32_t*>(raw.data()), array.count};
    return;
  }
  array.integer_copy.resize(array.count);
  for (std::size_t i = 0; i < array.count; ++i) {
    array.integer_copy[i] = static_cast<std::int32_t>(load<T>(raw.data() + i * sizeof(T)));
  }
  array.integers = array.integer_copy;
}

template <class T>
void set_floats(GgufArray& array, std::span<const std::byte> raw) {
  if (std::is_same_v<T, float> && aligned<float>(raw)) {
    array.floats = {reinterpret_cast<const float*>(raw.data()), array.count};
    return;
  }
  array.float_copy.resize(array.count);
  for (std::size_t i = 0; i < array.count; ++i) {
    array.float_copy[i] = static_cast<float>(load<T>(raw.data() + i * sizeof(T)));
  }
  array.floats = array.float_copy;
}

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& file) : reader_(bytes, file), bytes_(bytes) {}

  GgufContents parse() {
    read_header();
    read_entries();
    read_tensor_records();
    place_tensors();
    return std::move(contents_);
  }

 private:
  void read_header() {
    if (reader_.read<std::uint32_t>("the magic number") != kMagic) reader_.fail(0, "it does not begin with \"GGUF\"");
    const auto version = reader_.read<std::uint32_t>("the version");
    if (version != 0 && (version & 0xFFFFU) == 0) {
      throw NotSupported(reader_.file() +
                         ": this GGUF file is big endian (version field at byte 4), which is not read; convert it to "
                         "little endian.");
    }
    if (version == 1) {
      throw NotSupported(reader_.file() +
                         ": GGUF version 1 (at byte 4) is obsolete and not read; convert the model again.");
    }
    if (version != 2 && version != 3) {
      throw NotSupported(
          fmt::format("{}: GGUF version {} (at byte 4) is not known; versions 2 and 3 are. A newer Cairn may read it.",
                      reader_.file(), version));
    }
    // The smallest record of each kind bounds both counts by the file's size before anything is reserved.
    tensor_count_ = count("the number of tensors", kMaxTensors, 8 + 4 + 4 + 8);
    entry_count_ = count("the number of keys", kMaxKeys, 8 + 1 + 4 + 1);
  }

  std::uint64_t count(std::string_view what, std::uint64_t limit, std::uint64_t smallest) {
    const std::size_t at = reader_.position();
    const auto value = reader_.read<std::uint64_t>(what);
    if (value > limit) reader_.fail(at, fmt::format("{} is {}, more than the {} allowed", what, value, limit));
    if (value > reader_.remaining() / smallest) {
      reader_.fail(at, fmt::format("{} is {}, more than the file has room for", what, value));
    }
    return value;
  }

  void read_entries() {
    contents_.entries.reserve(entry_count_);
    contents_.index.reserve(entry_count_);
    ValueMap metadata;
    for (std::uint64_t i = 0; i < entry_count_; ++i) {
      GgufEntry entry;
      entry.offset = reader_.position();
      entry.key = reader_.string(kMaxKeyLength, fmt::format("key {}", i));
      if (entry.key.empty()) reader_.fail(entry.offset, fmt::format("key {} is empty", i));
      if (!contents_.index.emplace(entry.key, contents_.entries.size()).second) {
        reader_.fail(entry.offset, fmt::format("key {} occurs twice", quote_name(entry.key)));
      }
      where_ = "the value of key " + quote_name(entry.key);
      entry.type = read_type();
      Value value;
      if (entry.type == GgufValueType::kArray) {
        bool keep = true;
        GgufArray array = read_array(value, keep);
        if (keep) metadata.emplace_back(std::string(entry.key), std::move(value));
        entry.value = std::move(array);
      } else {
        value = read_scalar(entry);
        metadata.emplace_back(std::string(entry.key), std::move(value));
      }
      contents_.entries.push_back(std::move(entry));
    }
    contents_.metadata = Value(std::move(metadata));
  }

  GgufValueType read_type() {
    const std::size_t at = reader_.position();
    const auto number = reader_.read<std::uint32_t>(where_);
    if (number > static_cast<std::uint32_t>(GgufValueType::kF64)) {
      reader_.fail(at, fmt::format("{} has type number {}, which GGUF does not define", where_, number));
    }
    return static_cast<GgufValueType>(number);
  }

  // Sets entry.value and gives the same as a Value.
  Value read_scalar(GgufEntry& entry) {
    if (entry.type == GgufValueType::kString) {
      const std::string_view text = reader_.string(std::numeric_limits<std::uint64_t>::max(), where_);
      entry.value = text;
      return text;
    }
    const std::size_t at = reader_.position();
    const std::byte* raw = reader_.take(gguf_scalar_size(entry.type), where_).data();
    Value value = scalar_value(entry.type, raw, at);
    if (const auto* flag = value.get_if<bool>()) {
      entry.value = *flag;
    } else if (entry.type == GgufValueType::kU64) {
      entry.value = load<std::uint64_t>(raw);
    } else if (const auto* integer = value.get_if<std::int64_t>()) {
      entry.value = *integer;
    } else {
      entry.value = *value.get_if<double>();
    }
    return value;
  }

  // Any scalar but a string. An unsigned integer above 2^63 - 1 becomes the nearest double.
  Value scalar_value(GgufValueType type, const std::byte* raw, std::size_t offset) const {
    const auto integer = [](auto v) { return Value(static_cast<std::int64_t>(v)); };
    switch (type) {
      case GgufValueType::kU8:
        return integer(load<std::uint8_t>(raw));
      case GgufValueType::kI8:
        return integer(load<std::int8_t>(raw));
      case GgufValueType::kU16:
        return integer(load<std::uint16_t>(raw));
      case GgufValueType::kI16:
        return integer(load<std::int16_t>(raw));
      case GgufValueType::kU32:
        return integer(load<std::uint32_t>(raw));
      case GgufValueType::kI32:
        return integer(load<std::int32_t>(raw));
      case GgufValueType::kI64:
        return integer(load<std::int64_t>(raw));
      case GgufValueType::kU64: {
        const auto v = load<std::uint64_t>(raw);
        return std::in_range<std::int64_t>(v) ? integer(v) : Value(static_cast<double>(v));
      }
      case GgufValueType::kF32:
        return static_cast<double>(load<float>(raw));
      case GgufValueType::kF64:
        return load<double>(raw);
      case GgufValueType::kBool: {
        const auto v = load<std::uint8_t>(raw);
        if (v > 1) reader_.fail(offset, fmt::format("{} is a boolean of {}, neither 0 nor 1", where_, v));
        return v == 1;
      }
      case GgufValueType::kString:
      case GgufValueType::kArray:
        break;
    }
    return {};
  }

  struct ArrayHead {
    GgufValueType element;
    std::uint64_t count;
  };

  ArrayHead read_array_head() {
    const std::size_t at = reader_.position();
    const GgufValueType element = read_type();
    const auto elements = reader_.read<std::uint64_t>(where_);
    if (elements > kMaxArray) {
      reader_.fail(at,
                   fmt::format("{} is an array of {} elements, more than the {} allowed", where_, elements, kMaxArray));
    }
    std::uint64_t smallest = gguf_scalar_size(element);
    if (element == GgufValueType::kString) smallest = 8;
    if (element == GgufValueType::kArray) smallest = 12;
    if (elements > reader_.remaining() / smallest) {
      reader_.fail(at, fmt::format("{} is an array of {} elements, more than the file has room for", where_, elements));
    }
    return {element, elements};
  }

  // Reads an array; `list` becomes its Value unless it is too long, and then `keep` becomes false.
  GgufArray read_array(Value& list, bool& keep) {
    const std::size_t at = reader_.position();
    const ArrayHead head = read_array_head();
    GgufArray array;
    array.element = head.element;
    array.count = head.count;
    if (head.element == GgufValueType::kArray) {
      list = read_nested(head, at, 1);
      return array;
    }
    keep = head.count <= kMaxMetadataArray;
    if (keep) spend_elements(head.count, at);
    ValueList values;
    if (head.element == GgufValueType::kString) {
      array.strings.reserve(head.count);
      for (std::uint64_t i = 0; i < head.count; ++i) {
        array.strings.push_back(reader_.string(std::numeric_limits<std::uint64_t>::max(), where_));
        if (keep) values.emplace_back(array.strings.back());
      }
    } else {
      const std::size_t data = reader_.position();
      const auto raw = reader_.take(head.count * gguf_scalar_size(head.element), where_);
      set_numbers(array, raw, data);
      for (std::size_t i = 0; keep && i < head.count; ++i) {
        const std::size_t step = i * gguf_scalar_size(head.element);
        values.push_back(scalar_value(head.element, raw.data() + step, data + step));
      }
    }
    list = Value(std::move(values));
    return array;
  }

  void set_numbers(GgufArray& array, std::span<const std::byte> raw, std::size_t offset) const {
    switch (array.element) {
      case GgufValueType::kBool: {
        const auto bad = std::find_if(raw.begin(), raw.end(), [](std::byte b) { return b > std::byte{1}; });
        if (bad != raw.end()) {
          reader_.fail(offset + static_cast<std::size_t>(bad - raw.begin()),
                       fmt::format("{} has a boolean that is neither 0 nor 1", where_));
        }
        array.bytes = raw;
        break;
      }
      case GgufValueType::kU8:
      case GgufValueType::kI8:
        array.bytes = raw;
        break;
      case GgufValueType::kU16:
        return set_integers<std::uint16_t>(array, raw);
      case GgufValueType::kI16:
        return set_integers<std::int16_t>(array, raw);
      case GgufValueType::kU32:
        return set_integers<std::uint32_t>(array, raw);
      case GgufValueType::kI32:
        return set_integers<std::int32_t>(array, raw);
      case GgufValueType::kU64:
        return set_integers<std::uint64_t>(array, raw);
      case GgufValueType::kI64:
        return set_integers<std::int64_t>(array, raw);
      case GgufValueType::kF32:
        return set_floats<float>(array, raw);
      case GgufValueType::kF64:
        return set_floats<double>(array, raw);
      case GgufValueType::kString:
      case GgufValueType::kArray:
        break;
    }
  }

  // Arrays of arrays exist in the format and nowhere in practice: they are kept as Values whatever their length.
  Value read_nested(const ArrayHead& head, std::size_t at, int depth) {
    if (depth > kMaxNesting) {
      reader_.fail(at, fmt::format("{} nests arrays more than {} deep", where_, kMaxNesting));
    }
    spend_elements(head.count, at);
    ValueList values;
    values.reserve(head.count);
    for (std::uint64_t i = 0; i < head.count; ++i) {
      const std::size_t offset = reader_.position();
      if (head.element == GgufValueType::kArray) {
        values.push_back(read_nested(read_array_head(), offset, depth + 1));
      } else if (head.element == GgufValueType::kString) {
        values.emplace_back(reader_.string(std::numeric_limits<std::uint64_t>::max(), where_));
      } else {
        const auto raw = reader_.take(gguf_scalar_size(head.element), where_);
        values.push_back(scalar_value(head.element, raw.data(), offset));
      }
    }
    return Value(std::move(values));
  }

  void spend_elements(std::uint64_t elements, std::size_t offset) {
    value_elements_ += elements;
    if (value_elements_ > kMaxValueElements) {
      reader_.fail(offset, fmt::format("{} brings the elements of short and nested arrays above the {} allowed", where_,
                                       kMaxValueElements));
    }
  }

  void read_tensor_records() {
    contents_.tensors.reserve(tensor_count_);
    for (std::uint64_t i = 0; i < tensor_count_; ++i) {
      TensorInfo tensor;
      const std::size_t at = reader_.position();
      tensor.name = reader_.string(kMaxTensorName, fmt::format("the name of tensor {}", i));
      if (tensor.name.empty()) reader_.fail(at, fmt::format("tensor {} has no name", i));
      tensor.file = reader_.file();
      where_ = "tensor " + quote_name(tensor.name);
      read_shape(tensor);
      const std::size_t type_at = reader_.position();
      const auto type = reader_.read<std::uint32_t>(where_);
      const auto dtype = gguf_tensor_dtype(type);
      if (!dtype)
        reader_.fail(type_at, fmt::format("{} has type number {}, which this build does not know", where_, type));
      tensor.dtype = *dtype;
      const auto bytes = checked_nbytes(tensor.dtype, tensor.shape);
      if (!bytes) {
        reader_.fail(at, fmt::format("{} of type {} cannot have shape {}", where_, dtype_name(tensor.dtype),
                                     shape_string(tensor.shape)));
      }
      tensor.nbytes = *bytes;
      tensor.offset = reader_.read<std::uint64_t>(where_);
      records_.push_back(at);
      contents_.tensors.push_back(std::move(tensor));
    }
  }

  void read_shape(TensorInfo& tensor) {
    const std::size_t at = reader_.position();
    const auto dims = reader_.read<std::uint32_t>(where_);
    if (dims > kMaxDims) reader_.fail(at, fmt::format("{} has {} dimensions, more than {}", where_, dims, kMaxDims));
    tensor.shape.resize(dims);
    for (std::uint32_t d = 0; d < dims; ++d) {
      const auto extent = reader_.read<std::uint64_t>(where_);
      if (extent == 0 || !std::in_range<std::int64_t>(extent)) {
        reader_.fail(at, fmt::format("{} has {} elements in dimension {}", where_, extent, d));
      }
      tensor.shape[dims - 1 - d] = static_cast<std::int64_t>(extent);
    }
  }

  std::uint64_t alignment() const {
    const GgufEntry* entry = contents_.find(kAlignmentKey);
    if (entry == nullptr) return 32;
    const auto* value = std::get_if<std::int64_t>(&entry->value);
    if (entry->type != GgufValueType::kU32 || value == nullptr || *value < 8 ||
        static_cast<std::uint64_t>(*value) > kMaxAlignment ||
        !std::has_single_bit(static_cast<std::uint64_t>(*value))) {
      reader_.fail(entry->offset, fmt::format("key {} is not a U32 power of two from 8 to {}",
                                              quote_name(kAlignmentKey), kMaxAlignment));
    }
    return static_cast<std::uint64_t>(*value);
  }

  // Turns offsets into the data section into addresses, and checks that every tensor lies in the file for itself.
  void place_tensors() {
    const std::uint64_t align = alignment();
    if (contents_.tensors.empty()) return;
    const std::uint64_t data_start = (reader_.position() + align - 1) / align * align;
    for (std::size_t i = 0; i < contents_.tensors.size(); ++i) {
      TensorInfo& tensor = contents_.tensors[i];
      if (tensor.offset % align != 0) {
        reader_.fail(records_[i], fmt::format("tensor {} has data offset {}, not a multiple of the alignment {}",
                                              quote_name(tensor.name), tensor.offset, align));
      }
      if (data_start > bytes_.size() || tensor.offset > bytes_.size() - data_start ||
          tensor.nbytes > bytes_.size() - data_start - tensor.offset) {
        reader_.fail(records_[i],
                     fmt::format("tensor {} needs {} bytes from offset {} of the data, which begins at byte {}",
                                 quote_name(tensor.name), tensor.nbytes, tensor.offset, data_start));
      }
      tensor.offset += data_start;
      tensor.data = bytes_.data() + tensor.offset;
    }
    check_overlaps();
  }

  void check_overlaps() const {
    const auto& tensors = contents_.tensors;
    std::vector<std::size_t> order(tensors.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return tensors[a].offset < tensors[b].offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const TensorInfo& before = tensors[order[i - 1]];
      const TensorInfo& after = tensors[order[i]];
      if (after.offset - before.offset < before.nbytes) {
        reader_.fail(after.offset, fmt::format("the data of tensors {} and {} overlap", quote_name(before.name),
                                               quote_name(after.name)));
      }
    }
  }

  ByteReader reader_;
  std::span<const std::byte> bytes_;
  GgufContents contents_;
  std::vector<std::size_t> records_;  // byte offset of each tensor's record
  std::string where_;                 // what is being read, for messages
  std::uint64_t tensor_count_ = 0;
  std::uint64_t entry_count_ = 0;
  std::uint64_t value_elements_ = 0;
};

}  // namespace

GgufContents parse_gguf(std::span<const std::byte> bytes, const std::string& file) {
  return Parser(bytes, file).parse();
}

}  // namespace cairn
