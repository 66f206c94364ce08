// UTF-8 as the outside gives it: how long a character is, and whether it is one. Used by the JSON writer and the YAML
// reader.
#pragma once

#include <cstddef>
#include <string_view>

namespace cairn {

// The length of the valid UTF-8 character at `text[at]`, or 0 with `invalid_length` set to the length of the maximal
// invalid sequence there (at least 1).
std::size_t utf8_length(std::string_view text, std::size_t at, std::size_t& invalid_length);

bool is_valid_utf8(std::string_view text);

}  // namespace cairn
