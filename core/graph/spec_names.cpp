// Names and index lists of a model description.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/graph/spec_reader.hpp"
#include "core/tensor/abi_struct.hpp"

namespace cairn {
namespace {

// Bytes of the well-formed UTF-8 character at the start of `text`, 0 when it is none (overlong forms and surrogates
// too).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

bool is_clean_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 1 && (first < 0x20 || first == 0x7f)) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::string read_name(cairn_str text, const std::string& what) {
  if (text.size == 0) throw InvalidArgument(what + " is empty; every name needs at least one character.");
  if (text.data == nullptr) throw InvalidArgument(what + " has a size and no text.");
  if (text.size > kMaxNameBytes) {
    throw InvalidArgument(what + " has " + std::to_string(text.size) + " bytes; at most " +
                          std::to_string(kMaxNameBytes) + " are supported.");
  }
  std::string name(text.data, static_cast<std::size_t>(text.size));
  if (!is_clean_text(name)) throw InvalidArgument(what + " is not valid UTF-8 or holds a control character.");
  return name;
}

void check_new_name(std::vector<std::string>& seen, const std::string& name, const std::string& what) {
  if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
    throw InvalidArgument(what + " is \"" + name + "\", which is taken already; names must differ.");
  }
  seen.push_back(name);
}

std::vector<std::string> read_names(const cairn_str_span& names, std::size_t limit, const std::string& what) {
  check_span(names, limit, what);
  std::vector<std::string> result;
  for (std::uint64_t i = 0; i < names.count; ++i) {
    const std::string which = what + "[" + std::to_string(i) + "]";
    check_new_name(result, read_name(span_element(names, i), which), which);
  }
  return result;
}

void check_index(std::uint32_t index, std::size_t bound, const std::string& what, std::string_view things) {
  if (index >= bound) {
    throw InvalidArgument(what + " is " + std::to_string(index) + ", but the model has " + std::to_string(bound) + " " +
                          std::string(things) + ".");
  }
}

std::vector<std::uint32_t> read_indices(const cairn_u32_span& indices, std::size_t bound, const std::string& what,
                                        std::string_view things) {
  check_span(indices, bound, what);
  std::vector<std::uint32_t> result;
  for (std::uint64_t i = 0; i < indices.count; ++i) {
    const std::uint32_t index = indices.data[i];
    const std::string which = what + "[" + std::to_string(i) + "]";
    check_index(index, bound, which, things);
    if (std::find(result.begin(), result.end(), index) != result.end()) {
      throw InvalidArgument(which + " is " + std::to_string(index) + ", which the list names already.");
    }
    result.push_back(index);
  }
  return result;
}

}  // namespace cairn
