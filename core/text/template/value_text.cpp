// str() and repr() of template values, as Python writes them.
#include <charconv>
#include <cmath>
#include <string>

#include "core/text/template/unicode.hpp"
#include "core/text/template/value.hpp"

namespace cairn::tmpl {
namespace {

void append_repr(std::string& out, const Value& value);

void append_items(std::string& out, const std::vector<Value>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    append_repr(out, items[i]);
  }
}

void append_sequence(std::string& out, const Sequence& sequence) {
  switch (sequence.kind) {
    case SequenceKind::kList:
      out += '[';
      append_items(out, sequence.items);
      out += ']';
      break;
    case SequenceKind::kTuple:
      out += '(';
      append_items(out, sequence.items);
      out += sequence.items.size() == 1 ? ",)" : ")";
      break;
    case SequenceKind::kRange:
      out += "range(" + sequence.note + ")";
      break;
    case SequenceKind::kGenerator:
      out += "<generator object " + sequence.note + ">";
      break;
    case SequenceKind::kDictKeys:
    case SequenceKind::kDictValues:
    case SequenceKind::kDictItems:
      out += sequence.kind == SequenceKind::kDictKeys     ? "dict_keys(["
             : sequence.kind == SequenceKind::kDictValues ? "dict_values(["
                                                          : "dict_items([";
      append_items(out, sequence.items);
      out += "])";
      break;
  }
}

void append_repr(std::string& out, const Value& value) {
  if (Budget* budget = Budget::current()) {
    budget->work();
    budget->check_room(out.size());
  }
  if (value.is_string()) {
    if (value.is_markup()) {
      out += "Markup(" + repr_text(value.text()) + ")";
    } else {
      out += repr_text(value.text());
    }
  } else if (value.is_sequence()) {
    append_sequence(out, value.as_sequence());
  } else if (value.is_dict()) {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : value.dict().items()) {
      if (!first) out += ", ";
      first = false;
      append_repr(out, key);
      out += ": ";
      append_repr(out, item);
    }
    out += '}';
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else {
    out += to_text(value);
  }
}

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer, static_cast<size_t>(end - buffer));
  const size_t e = scientific.find('e');
  int exponent = 0;
  const char* exponent_start = scientific.data() + e + 1;
  if (*exponent_start == '+') ++exponent_start;
  std::from_chars(exponent_start, scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  // Fixed notation with the same (shortest) digits.
  end = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::fixed).ptr;
  std::string fixed(buffer, end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::string repr_text(std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = single ? '"' : '\'';
  std::string out(1, quote);
  charge_work(text.size());
  while (!text.empty()) {
    const char32_t code = decode_first(text);
    const size_t bytes = character_bytes(text);
    if (code == '\\' || code == static_cast<char32_t>(quote)) {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (is_printable(code)) {
      out += text.substr(0, bytes);
    } else {
      char buffer[16];
      const int count = code <= 0xFF ? std::snprintf(buffer, sizeof(buffer), "\\x%02x", static_cast<unsigned>(code))
                        : code <= 0xFFFF
                            ? std::snprintf(buffer, sizeof(buffer), "\\u%04x", static_cast<unsigned>(code))
                            : std::snprintf(buffer, sizeof(buffer), "\\U%08x", static_cast<unsigned>(code));
      out.append(buffer, static_cast<size_t>(count));
    }
    text.remove_prefix(bytes);
  }
  out += quote;
  return out;
}

std::string repr(const Value& value) {
  std::string out;
  append_repr(out, value);
  return out;
}

std::string to_text(const Value& value) {
  if (value.is_string()) return value.text();
  if (value.is_none()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_float()) return float_text(value.as_float());
  if (value.is_undefined()) return "";
  if (value.is_object()) {
    // A namespace can hold itself.
    if (Budget* budget = Budget::current()) {
      const Budget::Level level(*budget);
      return value.object().repr();
    }
    return value.object().repr();
  }
  return repr(value);
}

std::string type_name(const Value& value) {
  if (value.is_string()) return value.is_markup() ? "Markup" : "str";
  if (value.is_none()) return "NoneType";
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "int";
  if (value.is_float()) return "float";
  if (value.is_dict()) return "dict";
  if (value.is_undefined()) return "Undefined";
  if (value.is_object()) return value.object().type_name();
  switch (value.as_sequence().kind) {
    case SequenceKind::kList:
      return "list";
    case SequenceKind::kTuple:
      return "tuple";
    case SequenceKind::kRange:
      return "range";
    case SequenceKind::kGenerator:
      return "generator";
    case SequenceKind::kDictKeys:
      return "dict_keys";
    case SequenceKind::kDictValues:
      return "dict_values";
    case SequenceKind::kDictItems:
      return "dict_items";
  }
  return "object";
}

}  // namespace cairn::tmpl
