// The safetensors format: parse_safetensors. The JSON header is read event by event, because a tree of a hostile 100 MB
// header would take gigabytes, and because a tree hides repeated keys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/base/error.hpp"
#include "core/weights/quote_name.hpp"
#include "core/weights/safetensors.hpp"

namespace cairn {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxTensors = std::size_t{1} << 18;
constexpr std::size_t kMaxMetadata = std::size_t{1} << 16;
constexpr std::size_t kMaxDims = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

std::optional<DType> dtype_named(std::string_view name) {
  constexpr auto kTypes = std::to_array<std::pair<std::string_view, DType>>({
      {"F32", DType::kF32},
      {"F16", DType::kF16},
      {"BF16", DType::kBF16},
      {"F64", DType::kF64},
      {"I8", DType::kI8},
      {"U8", DType::kU8},
      {"I16", DType::kI16},
      {"U16", DType::kU16},
      {"I32", DType::kI32},
      {"U32", DType::kU32},
      {"I64", DType::kI64},
      {"U64", DType::kU64},
      {"F8_E4M3", DType::kF8E4M3},
      {"F8_E5M2", DType::kF8E5M2},
      {"BOOL", DType::kBool},
  });
  for (const auto& [text, dtype] : kTypes) {
    if (text == name) return dtype;
  }
  return std::nullopt;
}

// Receives the parser's events. Every method returns false, with problem() set, when the event has no place in a
// safetensors header; the parser then stops at that byte.
class HeaderHandler {
 public:
  static constexpr std::size_t max_object_size = kMaxTensors + 1;
  static constexpr std::size_t max_array_size = kMaxDims;
  static constexpr std::size_t max_key_size = 65536;
  static constexpr std::size_t max_string_size = std::size_t{1} << 20;

  const std::string& problem() const { return problem_; }
  std::vector<TensorInfo>& tensors() { return tensors_; }
  // End of each tensor's range, in the order of tensors(); TensorInfo::offset holds the begin meanwhile.
  const std::vector<std::uint64_t>& ends() const { return ends_; }
  ValueMap& metadata() { return metadata_; }
  bool has_metadata() const { return has_metadata_; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }

  bool on_object_begin(json::error_code& ec) {
    switch (state_) {
      case State::kStart:
        state_ = State::kTop;
        return true;
      case State::kTopValue:
        if (key_ == kMetadataKey) {
          state_ = State::kMetadata;
          has_metadata_ = true;
          return true;
        }
        tensors_.emplace_back();
        tensors_.back().name = key_;
        fields_ = 0;
        state_ = State::kTensor;
        return true;
      default:
        return refuse(ec, "an object");
    }
  }

  bool on_object_end(std::size_t, json::error_code& ec) {
    if (state_ == State::kTensor) {
      if (fields_ != (kDType | kShape | kOffsets)) {
        return fail(ec, fmt::format("tensor {} lacks dtype, shape or data_offsets", quote_name(tensors_.back().name)));
      }
      state_ = State::kTop;
    } else if (state_ == State::kMetadata) {
      state_ = State::kTop;
    } else {
      state_ = State::kDone;
    }
    return true;
  }

  bool on_array_begin(json::error_code& ec) {
    if (state_ == State::kTensorValue && (field_ == kShape || field_ == kOffsets)) {
      numbers_.clear();
      state_ = State::kNumbers;
      return true;
    }
    return refuse(ec, "an array");
  }

  bool on_array_end(std::size_t, json::error_code& ec) {
    TensorInfo& tensor = tensors_.back();
    if (field_ == kShape) {
      tensor.shape = numbers_;
    } else {
      if (numbers_.size() != 2 || numbers_[0] > numbers_[1]) {
        return fail(ec, fmt::format("tensor {} has data_offsets that are not [begin, end]", quote_name(tensor.name)));
      }
      tensor.offset = static_cast<std::uint64_t>(numbers_[0]);
      ends_.push_back(static_cast<std::uint64_t>(numbers_[1]));
    }
    state_ = State::kTensor;
    return true;
  }

  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_key(json::string_view part, std::size_t, json::error_code& ec) {
    text_.append(part.data(), part.size());
    key_ = std::exchange(text_, {});
    switch (state_) {
      case State::kTop:
        state_ = State::kTopValue;
        if (!names_.insert(key_).second) return fail(ec, fmt::format("{} occurs twice", quote_name(key_)));
        if (key_ != kMetadataKey && tensors_.size() >= kMaxTensors) {
          return fail(ec, fmt::format("it has more than the {} tensors allowed", kMaxTensors));
        }
        return true;
      case State::kMetadata:
        state_ = State::kMetadataValue;
        if (!metadata_keys_.insert(key_).second)
          return fail(ec, fmt::format("metadata {} occurs twice", quote_name(key_)));
        if (metadata_keys_.size() > kMaxMetadata) {
          return fail(ec, fmt::format("it has more than the {} metadata entries allowed", kMaxMetadata));
        }
        return true;
      case State::kTensor:
        return on_field(ec);
      default:
        return refuse(ec, "a key");
    }
  }

  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_string(json::string_view part, std::size_t, json::error_code& ec) {
    text_.append(part.data(), part.size());
    std::string text = std::exchange(text_, {});
    if (state_ == State::kMetadataValue) {
      metadata_.emplace_back(key_, Value(std::move(text)));
      state_ = State::kMetadata;
      return true;
    }
    if (state_ == State::kTensorValue && field_ == kDType) {
      const auto dtype = dtype_named(text);
      if (!dtype) {
        return fail(ec, fmt::format("tensor {} has dtype {}, which this build does not know",
                                    quote_name(tensors_.back().name), quote_name(text)));
      }
      tensors_.back().dtype = *dtype;
      state_ = State::kTensor;
      return true;
    }
    return refuse(ec, "a string");
  }

  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code& ec) {
    if (state_ != State::kNumbers || value < 0) return refuse(ec, "a number");
    numbers_.push_back(value);
    return true;
  }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code& ec) {
    return refuse(ec, "a number of 2^63 or more");
  }
  bool on_double(double, json::string_view, json::error_code& ec) { return refuse(ec, "a fraction"); }
  bool on_bool(bool, json::error_code& ec) { return refuse(ec, "a boolean"); }
  bool on_null(json::error_code& ec) { return refuse(ec, "a null"); }
  bool on_comment_part(json::string_view, json::error_code& ec) { return refuse(ec, "a comment"); }
  bool on_comment(json::string_view, json::error_code& ec) { return refuse(ec, "a comment"); }

 private:
  enum class State : std::uint8_t {
    kStart,          // before the header's object
    kTop,            // at a tensor name or __metadata__
    kTopValue,       // at its value
    kMetadata,       // at a metadata key
    kMetadataValue,  // at its string
    kTensor,         // at a field name
    kTensorValue,    // at its value
    kNumbers,        // in a shape or in data_offsets
    kDone,
  };
  static constexpr unsigned kDType = 1;
  static constexpr unsigned kShape = 2;
  static constexpr unsigned kOffsets = 4;

  bool on_field(json::error_code& ec) {
    if (key_ == "dtype") {
      field_ = kDType;
    } else if (key_ == "shape") {
      field_ = kShape;
    } else if (key_ == "data_offsets") {
      field_ = kOffsets;
    } else {
      return fail(ec, fmt::format("tensor {} has a field {}, which the format does not define",
                                  quote_name(tensors_.back().name), quote_name(key_)));
    }
    if ((fields_ & field_) != 0) {
      return fail(ec, fmt::format("tensor {} has {} twice", quote_name(tensors_.back().name), quote_name(key_)));
    }
    fields_ |= field_;
    state_ = State::kTensorValue;
    return true;
  }

  bool refuse(json::error_code& ec, std::string_view what) {
    return fail(ec, fmt::format("{} has no place there (last key {})", what, quote_name(key_)));
  }

  bool fail(json::error_code& ec, std::string problem) {
    problem_ = std::move(problem);
    ec = json::error::syntax;
    return false;
  }

  State state_ = State::kStart;
  unsigned field_ = 0;   // the one being read
  unsigned fields_ = 0;  // those the current tensor has
  std::string text_;     // parts of the current key or string
  std::string key_;
  std::vector<std::int64_t> numbers_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_keys_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::uint64_t> ends_;
  ValueMap metadata_;
  bool has_metadata_ = false;
  std::string problem_;
};

[[noreturn]] void fail(const std::string& file, std::uint64_t offset, std::string_view problem) {
  throw BadFile(fmt::format("{}: {} (at byte {}). The file is damaged or incomplete; download or convert it again.",
                            file, problem, offset));
}

// Fills in file, offset, data and nbytes, and puts the tensors in the order of their data.
void place_tensors(std::span<const std::byte> bytes, const std::string& file, std::uint64_t data_start,
                   std::vector<TensorInfo>& tensors, const std::vector<std::uint64_t>& ends) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorInfo& tensor = tensors[i];
    const auto expected = checked_nbytes(tensor.dtype, tensor.shape);
    tensor.nbytes = ends[i] - tensor.offset;
    if (!expected || *expected != tensor.nbytes) {
      fail(file, data_start + std::min<std::uint64_t>(tensor.offset, bytes.size() - data_start),
           fmt::format("tensor {} of type {} and shape {} has data_offsets [{}, {}], which is not its size",
                       quote_name(tensor.name), dtype_name(tensor.dtype), shape_string(tensor.shape), tensor.offset,
                       ends[i]));
    }
  }
  // Empty tensors sort before the one that begins at the same place.
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.offset, a.nbytes) < std::pair(b.offset, b.nbytes);
  });
  const std::uint64_t size = bytes.size() - data_start;
  std::uint64_t at = 0;
  for (TensorInfo& tensor : tensors) {
    if (tensor.offset != at) {
      fail(file, data_start + std::min(at, size),
           fmt::format("tensor {} begins at offset {} of the data where {} is next; tensors must follow one another",
                       quote_name(tensor.name), tensor.offset, at));
    }
    if (tensor.nbytes > size - at) {
      fail(file, data_start + at,
           fmt::format("tensor {} needs {} bytes and the file has {} left", quote_name(tensor.name), tensor.nbytes,
                       size - at));
    }
    at += tensor.nbytes;
    tensor.file = file;
    tensor.offset += data_start;
    tensor.data = bytes.data() + tensor.offset;
  }
  if (at != size) fail(file, data_start + at, fmt::format("{} bytes follow the last tensor", size - at));
}

}  // namespace

SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) fail(name, 0, fmt::format("it has {} bytes, too few for a header", bytes.size()));
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMaxHeader) fail(name, 0, fmt::format("its header length is {}, more than {}", length, kMaxHeader));
  if (length > bytes.size() - sizeof(length)) {
    fail(name, 0, fmt::format("its header length is {} and the file has {} bytes", length, bytes.size()));
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(length);
  if (length == 0 || *text != '{') fail(name, sizeof(length), "its header does not begin with '{'");

  json::parse_options options;
  options.max_depth = 4;
  json::basic_parser<HeaderHandler> parser(options);
  json::error_code error;
  const std::size_t used = parser.write_some(false, text, length, error);
  HeaderHandler& handler = parser.handler();
  if (error) {
    fail(name, sizeof(length) + used, handler.problem().empty() ? "its header is not valid JSON" : handler.problem());
  }
  const std::string_view padding(text + used, length - used);
  if (const auto stray = padding.find_first_not_of(" \t\r\n"); stray != std::string_view::npos) {
    fail(name, sizeof(length) + used + stray, "something follows the object in its header");
  }

  SafetensorsContents contents;
  contents.tensors = std::move(handler.tensors());
  if (handler.has_metadata()) contents.metadata = Value(std::move(handler.metadata()));
  place_tensors(bytes, name, sizeof(length) + length, contents.tensors, handler.ends());
  return contents;
}

}  // namespace cairn
