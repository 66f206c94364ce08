// Names that come from a file, made fit for a one-line message. Used by the weights readers only.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

// "text" in double quotes: bytes outside printable ASCII as \xNN, cut after 100 bytes.
inline std::string quote_name(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  if (text.size() > kLongest) out += "...";
  return out + "\"";
}

}  // namespace cairn
