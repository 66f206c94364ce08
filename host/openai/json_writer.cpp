#include "host/openai/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace cairn {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

void append_escaped_control(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  out += "\\u00";
  out += kHex[byte >> 4U];
  out += kHex[byte & 15U];
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at, std::size_t& invalid_length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  invalid_length = 1;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;   // no over-long forms
    if (lead == 0xED) high = 0x9F;  // no surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;  // nothing over U+10FFFF
  } else {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i >= text.size() || byte(i) < low || byte(i) > high) {
      invalid_length = i;
      return 0;
    }
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    std::size_t invalid = 0;
    if (const std::size_t length = utf8_length(text, i, invalid); length > 0) {
      out.append(text.substr(i, length));
      i += length;
    } else {
      out += kReplacement;
      i += invalid;
    }
  }
  return out;
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t invalid = 0;
    const std::size_t length = utf8_length(text, i, invalid);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t i = 0;
  while (i < text.size()) {
    // Runs of plain ASCII go over in one piece.
    std::size_t run = i;
    while (run < text.size() && static_cast<unsigned char>(text[run]) < 0x80 &&
           static_cast<unsigned char>(text[run]) >= 0x20 && text[run] != '"' && text[run] != '\\') {
      ++run;
    }
    out.append(text.substr(i, run - i));
    i = run;
    if (i == text.size()) break;
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_escaped_control(out, c);
      ++i;
    } else {
      std::size_t invalid = 0;
      if (const std::size_t length = utf8_length(text, i, invalid); length > 0) {
        out.append(text.substr(i, length));
        i += length;
      } else {
        out += kReplacement;
        i += invalid;
      }
    }
  }
  out += '"';
}

void JsonWriter::comma() {
  if (!first_) out_ += ',';
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  comma();
  out_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  comma();
  append_json_string(out_, name);
  out_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  comma();
  append_json_string(out_, text);
  return *this;
}

template <class T>
JsonWriter& JsonWriter::append_number(T value) {
  if (!std::isfinite(value)) return null();
  comma();
  std::array<char, 40> digits{};
  out_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t value) {
  comma();
  std::array<char, 24> digits{};
  out_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  return append_number(value);
}

JsonWriter& JsonWriter::number(float value) {
  return append_number(value);
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  comma();
  out_.append(json);
  return *this;
}

}  // namespace cairn
