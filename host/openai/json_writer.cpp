#include "host/openai/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "host/config/utf8.hpp"

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
