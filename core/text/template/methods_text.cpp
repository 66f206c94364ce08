// The methods of str. Positions and lengths are in characters, as in Python.
#include <algorithm>
#include <unordered_map>

#include "core/text/template/builtins.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/python_format.hpp"
#include "core/text/template/text_tools.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

Value same_kind(const Value& self, std::string text) {
  return Value(std::move(text), self.is_markup());
}

template <std::string (*kMap)(std::string_view)>
Value mapped(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("method", args, {});
  charge_work(self.text().size());
  check_room(5 * self.text().size());  // room for the characters as code points
  return same_kind(self, kMap(self.text()));
}

enum Side { kLeft = 1, kRight = 2, kBoth = 3 };

template <Side kSide>
Value strip(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("strip", args, {"chars"});
  charge_work(self.text().size());
  const bool given = parameters.has(0) && !parameters.at(0).is_none();
  if (given && !parameters.at(0).is_string()) throw RenderError("strip arg must be None or str");
  return same_kind(self, strip_text(self.text(), given ? &parameters.at(0).text() : nullptr, (kSide & kLeft) != 0,
                                    (kSide & kRight) != 0));
}

Value as_list(const Value& self, const std::vector<std::string_view>& pieces) {
  check_room(pieces.size() * (sizeof(Value) + sizeof(String)));
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (std::string_view piece : pieces) items.push_back(same_kind(self, std::string(piece)));
  return Value::list(std::move(items));
}

template <bool kFromRight>
Value split(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters(kFromRight ? "rsplit" : "split", args, {"sep", "maxsplit"});
  const int64_t limit = parameters.integer(1, -1);
  if (!parameters.has(0) || parameters.at(0).is_none()) {
    return as_list(self, kFromRight ? rsplit_space(self.text(), limit) : split_space(self.text(), limit));
  }
  const std::string& separator = parameters.text(0);
  if (separator.empty()) throw RenderError("empty separator");
  return as_list(self,
                 kFromRight ? rsplit_text(self.text(), separator, limit) : split_text(self.text(), separator, limit));
}

Value splitlines(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("splitlines", args, {"keepends"});
  charge_work(self.text().size());
  return as_list(self, split_lines(self.text(), parameters.truth(0, false)));
}

Value join(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("join", args, {"iterable"}, 1);
  if (!is_iterable(parameters.at(0))) throw RenderError("can only join an iterable");
  std::string out;
  bool first = true;
  size_t index = 0;
  for (const Value& item : iterate(parameters.at(0))) {
    if (!item.is_string()) {
      throw RenderError("sequence item " + std::to_string(index) + ": expected str instance, " + type_name(item) +
                        " found");
    }
    check_room(out.size() + self.text().size() + item.text().size());
    charge_work(self.text().size() + item.text().size());
    if (!first) out += self.text();
    first = false;
    out += self.is_markup() ? escape_html(item) : item.text();
    ++index;
  }
  return same_kind(self, std::move(out));
}

Value replace(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("replace", args, {"old", "new", "count"}, 2);
  const std::string& from = parameters.text(0);
  const std::string to = self.is_markup() ? escape_html(parameters.at(1)) : parameters.text(1);
  return same_kind(self, replace_text(self.text(), from, to, parameters.integer(2, -1)));
}

// The part of the text that optional start and end arguments choose, and the character number where it begins.
struct Window {
  std::string_view text;
  size_t first;
  bool valid;  // false when start lies beyond the end
};

Window window(const Value& self, const Parameters& parameters, size_t start_index) {
  const std::string_view text = self.text();
  if (!parameters.has(start_index)) return {text, 0, true};
  const auto size = static_cast<int64_t>(length_of(self));
  auto bound = [&](size_t i, int64_t fallback) {
    if (!parameters.has(i) || parameters.at(i).is_none()) return fallback;
    const int64_t number = parameters.integer(i, fallback);
    return number < 0 ? std::max<int64_t>(number + size, 0) : number;
  };
  const int64_t start = bound(start_index, 0);
  const int64_t end = std::min(bound(start_index + 1, size), size);
  if (start > size || end < start) return {{}, 0, false};
  const size_t from = byte_offset(text, static_cast<size_t>(start));
  const size_t bytes = byte_offset(text.substr(from), static_cast<size_t>(end - start));
  charge_work(from + bytes);
  return {text.substr(from, bytes), static_cast<size_t>(start), true};
}

template <bool kFromRight, bool kMustExist>
Value find(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("find", args, {"sub", "start", "end"}, 1);
  const std::string& wanted = parameters.text(0);
  const Window part = window(self, parameters, 1);
  const size_t at = !part.valid  ? std::string_view::npos
                    : kFromRight ? rfind_text(part.text, wanted)
                                 : find_text(part.text, wanted);
  if (at != std::string_view::npos) return Value(part.first + count_characters(part.text.substr(0, at)));
  if (kMustExist) throw RenderError("substring not found");
  return Value(-1);
}

Value count(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("count", args, {"sub", "start", "end"}, 1);
  const std::string& wanted = parameters.text(0);
  const Window part = window(self, parameters, 1);
  if (!part.valid) return Value(0);
  if (wanted.empty()) return Value(count_characters(part.text) + 1);
  size_t total = 0;
  for (size_t at = find_text(part.text, wanted); at != std::string_view::npos;
       at = find_text(part.text, wanted, at + wanted.size())) {
    ++total;
  }
  return Value(total);
}

template <bool kAtEnd>
Value matches(Interpreter&, const Value& self, CallArgs& args) {
  const char* name = kAtEnd ? "endswith" : "startswith";
  const Parameters parameters(name, args, {"prefix", "start", "end"}, 1);
  const Window part = window(self, parameters, 1);
  auto one = [&](const Value& wanted) {
    if (!wanted.is_string()) {
      throw RenderError(std::string(name) + " first arg must be str or a tuple of str, not " + type_name(wanted));
    }
    if (!part.valid) return false;
    return kAtEnd ? part.text.ends_with(wanted.text()) : part.text.starts_with(wanted.text());
  };
  const Value& wanted = parameters.at(0);
  if (!wanted.is_tuple()) return Value(one(wanted));
  const std::vector<Value>& options = wanted.as_sequence().items;
  return Value(std::any_of(options.begin(), options.end(), one));
}

template <bool (*kClass)(char32_t)>
Value all_are(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("method", args, {});
  std::string_view rest = self.text();
  charge_work(rest.size());
  if (rest.empty()) return Value(false);
  for (; !rest.empty(); rest.remove_prefix(character_bytes(rest))) {
    if (!kClass(decode_first(rest))) return Value(false);
  }
  return Value(true);
}

bool is_numeric(char32_t code) {
  return is_digit(code) || (is_alnum(code) && !is_alpha(code));
}

Value is_ascii_text(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("isascii", args, {});
  return Value(self.string().ascii);
}

Value is_identifier(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("isidentifier", args, {});
  std::string_view rest = self.text();
  if (rest.empty() || (decode_first(rest) != '_' && !is_alpha(decode_first(rest)))) return Value(false);
  for (; !rest.empty(); rest.remove_prefix(character_bytes(rest))) {
    if (!is_word(decode_first(rest))) return Value(false);
  }
  return Value(true);
}

// islower and isupper: some letter has the case and none another.
template <bool (*kWanted)(char32_t), bool (*kRefused)(char32_t)>
Value all_cased(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("method", args, {});
  bool found = false;
  std::string_view rest = self.text();
  charge_work(rest.size());
  for (; !rest.empty(); rest.remove_prefix(character_bytes(rest))) {
    const char32_t code = decode_first(rest);
    if (kRefused(code) || is_title(code)) return Value(false);
    found = found || kWanted(code);
  }
  return Value(found);
}

Value is_title_text(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("istitle", args, {});
  bool found = false;
  bool in_word = false;
  std::string_view rest = self.text();
  charge_work(rest.size());
  for (; !rest.empty(); rest.remove_prefix(character_bytes(rest))) {
    const char32_t code = decode_first(rest);
    const bool upper = is_upper(code) || is_title(code);
    if (upper ? in_word : is_lower(code) && !in_word) return Value(false);
    in_word = upper || is_lower(code);
    found = found || in_word;
  }
  return Value(found);
}

// center, ljust and rjust: what is missing to the width, split between the sides.
template <Side kPadded>
Value pad(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("method", args, {"width", "fillchar"}, 1);
  const int64_t width = parameters.integer(0, 0);
  const std::string fill = parameters.has(1) ? parameters.text(1) : " ";
  if (count_characters(fill) != 1) throw RenderError("The fill character must be exactly one character long");
  return same_kind(self, pad_text(self.text(), width, fill, (kPadded & kLeft) != 0, (kPadded & kRight) != 0));
}

Value zfill(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("zfill", args, {"width"}, 1);
  const std::string& text = self.text();
  const bool sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  const int64_t width = parameters.integer(0, 0) - (sign ? 1 : 0);
  return same_kind(self, text.substr(0, sign ? 1 : 0) + pad_text(text.substr(sign ? 1 : 0), width, "0", true, false));
}

Value removeprefix(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("removeprefix", args, {"prefix"}, 1);
  const std::string& prefix = parameters.text(0);
  return self.text().starts_with(prefix) ? same_kind(self, self.text().substr(prefix.size())) : self;
}

Value removesuffix(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("removesuffix", args, {"suffix"}, 1);
  const std::string& suffix = parameters.text(0);
  if (suffix.empty() || !self.text().ends_with(suffix)) return self;
  return same_kind(self, self.text().substr(0, self.text().size() - suffix.size()));
}

template <bool kFromRight>
Value partition(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("partition", args, {"sep"}, 1);
  const std::string& separator = parameters.text(0);
  if (separator.empty()) throw RenderError("empty separator");
  const std::string& text = self.text();
  const size_t at = kFromRight ? rfind_text(text, separator) : find_text(text, separator);
  std::vector<Value> parts(3, same_kind(self, ""));
  if (at == std::string_view::npos) {
    parts[kFromRight ? 2 : 0] = self;
  } else {
    parts[0] = same_kind(self, text.substr(0, at));
    parts[1] = same_kind(self, separator);
    parts[2] = same_kind(self, text.substr(at + separator.size()));
  }
  return Value::tuple(std::move(parts));
}

Value expandtabs(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("expandtabs", args, {"tabsize"});
  const int64_t size = parameters.integer(0, 8);
  std::string out;
  int64_t column = 0;
  for (char c : self.text()) {
    if (c == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      check_room(out.size() + static_cast<size_t>(spaces));
      charge_work(static_cast<size_t>(spaces));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    } else {
      out += c;
      column = c == '\n' || c == '\r' ? 0 : column + ((static_cast<unsigned char>(c) & 0xC0) != 0x80);
    }
  }
  return same_kind(self, std::move(out));
}

Value format(Interpreter&, const Value& self, CallArgs& args) {
  return brace_format(self, args);
}

Value format_map(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("format_map", args, {"mapping"}, 1);
  if (!parameters.at(0).is_dict()) throw RenderError("format_map() needs a mapping");
  CallArgs named;
  for (const auto& [key, value] : parameters.at(0).dict().items()) {
    if (key.is_string()) named.named.emplace_back(key.text(), value);
  }
  return brace_format(self, named);
}

}  // namespace

MethodFunction find_text_method(std::string_view name) {
  static const std::unordered_map<std::string_view, MethodFunction> kMethods = {
      {"strip", strip<kBoth>},
      {"lstrip", strip<kLeft>},
      {"rstrip", strip<kRight>},
      {"split", split<false>},
      {"rsplit", split<true>},
      {"splitlines", splitlines},
      {"join", join},
      {"replace", replace},
      {"startswith", matches<false>},
      {"endswith", matches<true>},
      {"upper", mapped<to_upper>},
      {"lower", mapped<to_lower>},
      {"title", mapped<to_title>},
      {"capitalize", mapped<capitalize>},
      {"swapcase", mapped<swap_case>},
      {"casefold", mapped<case_fold>},
      {"find", find<false, false>},
      {"rfind", find<true, false>},
      {"index", find<false, true>},
      {"rindex", find<true, true>},
      {"count", count},
      {"format", format},
      {"format_map", format_map},
      {"isdigit", all_are<is_digit>},
      {"isdecimal", all_are<is_decimal>},
      {"isnumeric", all_are<is_numeric>},
      {"isalpha", all_are<is_alpha>},
      {"isalnum", all_are<is_alnum>},
      {"isspace", all_are<is_space>},
      {"isprintable", all_are<is_printable>},
      {"isascii", is_ascii_text},
      {"isidentifier", is_identifier},
      {"isupper", all_cased<is_upper, is_lower>},
      {"islower", all_cased<is_lower, is_upper>},
      {"istitle", is_title_text},
      {"center", pad<kBoth>},
      {"ljust", pad<kRight>},
      {"rjust", pad<kLeft>},
      {"zfill", zfill},
      {"removeprefix", removeprefix},
      {"removesuffix", removesuffix},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"expandtabs", expandtabs},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace cairn::tmpl
