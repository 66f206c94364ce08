// UTF-8 scanning and the few character properties that tokenizers ask for. Used only inside core/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::unicode {

inline constexpr char32_t kReplacement = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

enum class Scan : std::uint8_t { kComplete, kIncomplete, kInvalid };

// What lies at the start of `bytes` (not empty). kComplete: one character of `length` bytes. kIncomplete: all bytes are
// the beginning of a character. kInvalid: the first `length` bytes are one maximal invalid sequence (WHATWG).
struct ScanResult {
  Scan state;
  std::uint8_t length;
};
ScanResult scan(std::string_view bytes);

// Length of the longest prefix that is valid UTF-8.
std::size_t valid_prefix(std::string_view bytes);

// Appends `bytes` with every maximal invalid sequence, an incomplete end included, as U+FFFD.
void append_sanitized(std::string& out, std::string_view bytes);

// Reads the character at `pos` and moves past it. `text` must be valid UTF-8 and pos inside it.
inline char32_t next(std::string_view text, std::size_t& pos) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(pos);
  if (lead < 0x80) return byte(pos++);
  if (lead < 0xE0) {
    const char32_t c = (lead & 0x1Fu) << 6 | (byte(pos + 1) & 0x3Fu);
    pos += 2;
    return c;
  }
  if (lead < 0xF0) {
    const char32_t c = (lead & 0x0Fu) << 12 | (byte(pos + 1) & 0x3Fu) << 6 | (byte(pos + 2) & 0x3Fu);
    pos += 3;
    return c;
  }
  const char32_t c =
      (lead & 0x07u) << 18 | (byte(pos + 1) & 0x3Fu) << 12 | (byte(pos + 2) & 0x3Fu) << 6 | (byte(pos + 3) & 0x3Fu);
  pos += 4;
  return c;
}

// Bytes of the character that starts with `lead`, in valid UTF-8.
inline std::size_t length_of(char lead) {
  const auto b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

// The start of the last character of `text` (valid UTF-8, not empty).
inline std::size_t last_char(std::string_view text) {
  std::size_t i = text.size() - 1;
  while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) --i;
  return i;
}

void append(std::string& out, char32_t c);

bool is_ascii(std::string_view text);
bool is_white_space(char32_t c);                      // Unicode White_Space
bool is_numeric(char32_t c);                          // Nd, Nl, No
bool is_punctuation(char32_t c);                      // P*, or one of ASCII's punctuation and symbols
bool is_other(char32_t c);                            // Cc, Cf, Cs, Co
bool is_mark(char32_t c);                             // Mn, Mc, Me
bool is_nonspacing_mark(char32_t c);                  // Mn
bool is_cjk_ideograph(char32_t c);                    // the ranges BERT puts spaces around
void append_lowercase(std::string& out, char32_t c);  // full mapping, without context

enum class Form : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };
// The normalisation form of `text` (valid UTF-8). Unassigned characters are kept.
std::string normalize(std::string_view text, Form form);

// Calls back with each extended grapheme cluster's end, in order.
// Returns the end of the cluster that starts at `pos`.
std::size_t grapheme_end(std::string_view text, std::size_t pos);

}  // namespace cairn::unicode
