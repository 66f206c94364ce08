// printf-style and brace formatting, with the conversions that apply to text and numbers.
#include "core/text/template/python_format.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/text/template/builtins.hpp"
#include "core/text/template/number_text.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/text_tools.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

// Hands out the arguments of "%" one after another.
class PercentArguments {
 public:
  explicit PercentArguments(const Value& value) : value_(value), is_tuple_(value.is_tuple()) {}
  Value next() {
    const size_t count = is_tuple_ ? value_.as_sequence().items.size() : 1;
    if (used_ >= count) throw RenderError("not enough arguments for format string");
    ++used_;
    return is_tuple_ ? value_.as_sequence().items[used_ - 1] : value_;
  }
  Value named(const std::string& key) {
    if (!value_.is_dict()) throw RenderError("format requires a mapping");
    used_ = 1;
    const Value* found = value_.dict().find(key);
    if (!found) throw RenderError("the format's key " + repr_text(key) + " is not in the mapping");
    return *found;
  }
  void check_all_used() const {
    // One argument that could be subscripted may go unused: Python takes it for a mapping.
    const bool subscriptable =
        value_.is_dict() || value_.is_list() || value_.is_undefined() || value_.is_kind(SequenceKind::kRange);
    if (is_tuple_ ? used_ < value_.as_sequence().items.size() : used_ == 0 && !subscriptable) {
      throw RenderError("not all arguments converted during string formatting");
    }
  }

 private:
  const Value& value_;
  bool is_tuple_;
  size_t used_ = 0;
};

int64_t integer_argument(const Value& value, char conversion) {
  if (value.is_integral()) return value.as_int();
  if (value.is_undefined()) fail_undefined(value);
  const bool decimal = conversion == 'd' || conversion == 'i' || conversion == 'u';
  if (value.is_float() && decimal) return float_to_integer(value.as_float());
  throw RenderError(std::string("%") + conversion + " format: " + (decimal ? "a real number" : "an integer") +
                    " is required, not " + type_name(value));
}

double float_argument(const Value& value) {
  if (value.is_number()) return value.as_float();
  if (value.is_undefined()) fail_undefined(value);
  throw RenderError("must be real number, not " + type_name(value));
}

// One conversion of a % format: flags, width, precision and letter are parsed already.
std::string percent_convert(const Value& value, char letter, const NumberStyle& style, bool escape) {
  switch (letter) {
    case 's':
    case 'r':
    case 'a': {
      std::string text = letter == 's' ? (escape ? escape_html(value) : to_text(value)) : repr(value);
      if (style.precision >= 0) text.resize(byte_offset(text, static_cast<size_t>(style.precision)));
      return text;
    }
    case 'c':
      if (value.is_string() && length_of(value) == 1) return value.text();
      if (value.is_integral() && value.as_int() >= 0 && value.as_int() <= 0x10FFFF &&
          (value.as_int() < 0xD800 || value.as_int() > 0xDFFF)) {
        std::string text;
        append_utf8(text, static_cast<char32_t>(value.as_int()));
        return text;
      }
      throw RenderError("%c requires int or char");
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      return format_integer(integer_argument(value, letter), letter == 'i' || letter == 'u' ? 'd' : letter, style);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      return format_float(float_argument(value), letter, style);
    default:
      throw RenderError(std::string("unsupported format character '") + letter + "'");
  }
}

int parse_number(std::string_view text, size_t& at) {
  int number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = number * 10 + (text[at++] - '0');
    if (number > kMaxFormatWidth) throw RenderError("a format's width or precision is too large");
  }
  return number;
}

}  // namespace

Value percent_format(const Value& format, const Value& arguments) {
  const std::string_view text = format.text();
  PercentArguments args(arguments);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t percent = std::min(text.find('%', at), text.size());
    charge_work(percent - at);
    out += text.substr(at, percent - at);
    at = percent + 1;
    if (percent == text.size()) break;
    if (at < text.size() && text[at] == '%') {
      out += '%';
      ++at;
      continue;
    }
    std::optional<Value> value;
    if (at < text.size() && text[at] == '(') {
      const size_t close = text.find(')', at);
      if (close == std::string_view::npos) throw RenderError("incomplete format key");
      value = args.named(std::string(text.substr(at + 1, close - at - 1)));
      at = close + 1;
    }
    NumberStyle style;
    bool left = false;
    bool zero = false;
    for (; at < text.size() && std::string_view("#0- +").find(text[at]) != std::string_view::npos; ++at) {
      left = left || text[at] == '-';
      zero = zero || text[at] == '0';
      style.alternate = style.alternate || text[at] == '#';
      if (text[at] == '+') style.sign = '+';
      if (text[at] == ' ' && style.sign != '+') style.sign = ' ';
    }
    auto star_or_number = [&] {
      if (at >= text.size() || text[at] != '*') return parse_number(text, at);
      ++at;
      const int64_t number = integer_argument(args.next(), 'd');
      if (number > kMaxFormatWidth || number < -kMaxFormatWidth) throw RenderError("a format's width is too large");
      return static_cast<int>(number);
    };
    int width = star_or_number();
    if (width < 0) {
      left = true;
      width = -width;
    }
    if (at < text.size() && text[at] == '.') {
      ++at;
      style.precision = std::max(star_or_number(), 0);
    }
    while (at < text.size() && (text[at] == 'h' || text[at] == 'l' || text[at] == 'L')) ++at;
    if (at >= text.size()) throw RenderError("incomplete format");
    const char letter = text[at++];
    if (!value) value = args.next();
    std::string piece = percent_convert(*value, letter, style, format.is_markup());
    const bool numeric = std::string_view("diuoxXeEfFgG").find(letter) != std::string_view::npos;
    if (zero && numeric && !left) {
      piece = pad_number(piece, width);
    } else {
      piece = pad_text(piece, width, " ", !left, left);
    }
    check_room(out.size() + piece.size());
    out += piece;
  }
  args.check_all_used();
  return Value(std::move(out), format.is_markup());
}

namespace {

// "{...}".format: fields with attribute and item access, conversions and (nested) format specifications.
class BraceFormatter {
 public:
  BraceFormatter(CallArgs& args, bool escape) : args_(args), escape_(escape) {}

  std::string format(std::string_view text, int nesting) {
    if (nesting > 2) throw RenderError("Max string recursion exceeded");
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (c != '{' && c != '}') {
        const size_t end = std::min(text.find_first_of("{}", at), text.size());
        charge_work(end - at);
        out += text.substr(at, end - at);
        at = end;
      } else if (at + 1 < text.size() && text[at + 1] == c) {
        out += c;
        at += 2;
      } else if (c == '}') {
        throw RenderError("Single '}' encountered in format string");
      } else {
        const size_t close = matching_brace(text, at);
        const std::string piece = field(text.substr(at + 1, close - at - 1), nesting);
        check_room(out.size() + piece.size());
        out += piece;
        at = close + 1;
      }
    }
    return out;
  }

 private:
  static size_t matching_brace(std::string_view text, size_t open) {
    int depth = 0;
    for (size_t at = open; at < text.size(); ++at) {
      if (text[at] == '{') ++depth;
      if (text[at] == '}' && --depth == 0) return at;
    }
    throw RenderError(open + 1 == text.size() ? "Single '{' encountered in format string"
                                              : "expected '}' before end of string");
  }

  std::string field(std::string_view inside, int nesting) {
    // The name ends at a conversion or a specification, unless those characters stand inside [].
    size_t end = 0;
    for (int brackets = 0; end < inside.size(); ++end) {
      if (inside[end] == '[') ++brackets;
      if (inside[end] == ']') --brackets;
      if (brackets <= 0 && (inside[end] == '!' || inside[end] == ':')) break;
    }
    Value value = resolve(inside.substr(0, end));
    std::string_view rest = inside.substr(end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2) throw RenderError("end of string while looking for conversion specifier");
      if (rest[1] == 's') {
        value = Value(to_text(value));
      } else if (rest[1] == 'r' || rest[1] == 'a') {
        value = Value(repr(value));
      } else {
        throw RenderError(std::string("Unknown conversion specifier ") + rest[1]);
      }
      rest.remove_prefix(2);
      if (!rest.empty() && rest[0] != ':') throw RenderError("expected ':' after conversion specifier");
    }
    const std::string specification = rest.empty() ? "" : format(rest.substr(1), nesting + 1);
    if (escape_) return escape_html(specification.empty() ? value : Value(format_value(value, specification)));
    return format_value(value, specification);
  }

  Value resolve(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    const std::string first(name.substr(0, end));
    Value value = first_value(first);
    for (size_t at = end; at < name.size();) {
      if (name[at] == '.') {
        const size_t stop = std::min(name.find_first_of(".[", at + 1), name.size());
        if (stop == at + 1) throw RenderError("Empty attribute in format string");
        value = get_attribute(value, name.substr(at + 1, stop - at - 1));
        at = stop;
      } else if (name[at] == '[') {
        const size_t close = name.find(']', at);
        if (close == std::string_view::npos) throw RenderError("Missing ']' in format string");
        const std::string key(name.substr(at + 1, close - at - 1));
        if (key.empty()) throw RenderError("Empty attribute in format string");
        value = get_item(value, is_index(key) ? Value(std::stoi(key)) : Value(key));
        at = close + 1;
      } else {
        throw RenderError("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  static bool is_index(const std::string& key) {
    return !key.empty() && key.size() < 10 &&
           std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  Value first_value(const std::string& name) {
    if (name.empty() || is_index(name)) {
      const Numbering wanted = name.empty() ? Numbering::kAutomatic : Numbering::kManual;
      if (numbering_ != Numbering::kUndecided && numbering_ != wanted) {
        throw RenderError("cannot switch between manual field specification and automatic field numbering");
      }
      numbering_ = wanted;
      const size_t index = name.empty() ? next_++ : static_cast<size_t>(std::stoi(name));
      if (index >= args_.positional.size()) {
        throw RenderError("Replacement index " + std::to_string(index) + " out of range for positional args tuple");
      }
      return args_.positional[index];
    }
    for (const auto& [key, value] : args_.named) {
      if (key == name) return value;
    }
    throw RenderError("the format's key " + repr_text(name) + " is not among its arguments");
  }

  enum class Numbering { kUndecided, kAutomatic, kManual };

  CallArgs& args_;
  bool escape_;
  Numbering numbering_ = Numbering::kUndecided;
  size_t next_ = 0;
};

}  // namespace

Value brace_format(const Value& format, CallArgs& args) {
  return Value(BraceFormatter(args, format.is_markup()).format(format.text(), 0), format.is_markup());
}

}  // namespace cairn::tmpl
