// Filters that make text: upper, trim, replace, indent, truncate, escape, wordwrap...
#include <algorithm>
#include <unordered_map>

#include "core/text/template/builtins.hpp"
#include "core/text/template/html_text.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/python_format.hpp"
#include "core/text/template/text_tools.hpp"
#include "core/text/template/unicode.hpp"
#include "core/text/template/word_wrap.hpp"

namespace cairn::tmpl {
namespace {

// soft_str of Jinja: text stays as it is, with its safe mark.
Value soft_text(const Value& value) {
  return value.is_string() ? value : Value(to_text(value));
}

template <std::string (*kMap)(std::string_view)>
Value mapped(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("filter", args, {});
  const Value text = soft_text(input);
  charge_work(text.text().size());
  check_room(5 * text.text().size());
  return Value(kMap(text.text()), text.is_markup());
}

// Jinja's own title case: a word starts after white space, a hyphen or an opening bracket.
std::string title_words(std::string_view text) {
  std::string out;
  std::string word;
  auto flush = [&] {
    if (word.empty()) return;
    const size_t first = character_bytes(word);
    out += to_upper(word.substr(0, first));
    out += to_lower(word.substr(first));
    word.clear();
  };
  while (!text.empty()) {
    const char32_t code = decode_first(text);
    const std::string_view character = text.substr(0, character_bytes(text));
    if (is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' || code == '<') {
      flush();
      out += character;
    } else {
      word += character;
    }
    text.remove_prefix(character.size());
  }
  flush();
  return out;
}

Value trim(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("trim", args, {"chars"});
  const Value text = soft_text(input);
  charge_work(text.text().size());
  const bool given = parameters.has(0) && !parameters.at(0).is_none();
  return Value(strip_text(text.text(), given ? &parameters.text(0) : nullptr, true, true), text.is_markup());
}

Value replace(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("replace", args, {"old", "new", "count"}, 2);
  const int64_t limit = parameters.has(2) && !parameters.at(2).is_none() ? parameters.integer(2, -1) : -1;
  return Value(replace_text(to_text(input), to_text(parameters.at(0)), to_text(parameters.at(1)), limit));
}

Value string(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("string", args, {});
  return soft_text(input);
}

Value center(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("center", args, {"width"});
  const Value text = soft_text(input);
  return Value(pad_text(text.text(), parameters.integer(0, 80), " ", true, true), text.is_markup());
}

const Value& need_text(const Value& input) {
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is_string()) {
    throw RenderError("unsupported operand type(s) for +: '" + type_name(input) + "' and 'str'");
  }
  return input;
}

Value indent(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("indent", args, {"width", "first", "blank"});
  const std::string& text = need_text(input).text();
  const std::string indentation = parameters.has(0) && parameters.at(0).is_string()
                                      ? parameters.at(0).text()
                                      : repeat(" ", parameters.integer(0, 4));
  const bool blank = parameters.truth(2, false);
  std::string out = parameters.truth(1, false) ? indentation : "";
  // Jinja adds a newline before splitting, so that a text which ends in one keeps it.
  const std::string with_newline = concatenate(text, "\n");
  const std::vector<std::string_view> lines = split_lines(with_newline, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    check_room(out.size() + indentation.size() + lines[i].size() + 1);
    charge_work(indentation.size() + lines[i].size());
    if (i != 0) {
      out += '\n';
      if (blank || !lines[i].empty()) out += indentation;
    }
    out += lines[i];
  }
  return Value(std::move(out), input.is_markup());
}

Value truncate(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("truncate", args, {"length", "killwords", "end", "leeway"});
  const int64_t length = parameters.integer(0, 255);
  const std::string end = parameters.has(2) ? parameters.text(2) : "...";
  const int64_t leeway = parameters.has(3) && !parameters.at(3).is_none() ? parameters.integer(3, 5) : 5;
  const auto end_length = static_cast<int64_t>(count_characters(end));
  if (length < end_length) {
    throw RenderError("expected length >= " + std::to_string(end_length) + ", got " + std::to_string(length));
  }
  if (leeway < 0) throw RenderError("expected leeway >= 0, got " + std::to_string(leeway));
  const auto size = static_cast<int64_t>(length_of(input));
  if (size <= length || size - length <= leeway) return input;
  if (!input.is_string()) throw RenderError("only text can be truncated, not '" + type_name(input) + "'");
  std::string_view kept = input.text();
  kept = kept.substr(0, byte_offset(kept, static_cast<size_t>(length - end_length)));
  if (!parameters.truth(1, false)) kept = kept.substr(0, kept.rfind(' '));
  return Value(concatenate(kept, end), input.is_markup());
}

Value wordwrap(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("wordwrap", args, {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  if (!input.is_string()) throw RenderError("'" + type_name(input) + "' object has no attribute 'splitlines'");
  WrapStyle style;
  style.width = parameters.integer(0, 79);
  style.break_long_words = parameters.truth(1, true);
  style.break_on_hyphens = parameters.truth(3, true);
  const std::string line_end = parameters.has(2) && !parameters.at(2).is_none() ? parameters.text(2) : "\n";
  return Value(wrap_words(input.text(), style, line_end));
}

Value wordcount(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("wordcount", args, {});
  const Value text = soft_text(input);
  int64_t words = 0;
  bool inside = false;
  charge_work(text.text().size());
  for (std::string_view rest = text.text(); !rest.empty(); rest.remove_prefix(character_bytes(rest))) {
    const bool word = is_word(decode_first(rest));
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value(words);
}

Value escape(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("escape", args, {});
  return Value(escape_html(input), true);
}

Value force_escape(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("forceescape", args, {});
  return Value(escape_html(Value(to_text(input))), true);
}

Value safe(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("safe", args, {});
  return Value(to_text(input), true);
}

Value striptags(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("striptags", args, {});
  return Value(strip_tags(to_text(input)));
}

Value format(Interpreter&, const Value& input, CallArgs& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    throw RenderError("can't handle positional and keyword arguments at the same time");
  }
  if (args.named.empty()) return percent_format(soft_text(input), Value::tuple(std::move(args.positional)));
  auto named = std::make_shared<Dict>();
  for (const auto& [name, value] : args.named) named->set(Value(name), value);
  return percent_format(soft_text(input), Value(std::move(named)));
}

Value url_encode(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("urlencode", args, {});
  if (input.is_string() || !is_iterable(input)) return Value(quote_url(to_text(input), false));
  std::string out;
  auto add = [&](const Value& key, const Value& value) {
    check_room(out.size());
    if (!out.empty()) out += '&';
    out += quote_url(to_text(key), true) + "=" + quote_url(to_text(value), true);
  };
  if (input.is_dict()) {
    for (const auto& [key, value] : input.dict().items()) add(key, value);
    return Value(std::move(out));
  }
  for (const Value& pair : iterate(input)) {
    const std::vector<Value> both = iterate(pair);
    if (both.size() != 2) throw RenderError("urlencode needs pairs of a key and a value");
    add(both[0], both[1]);
  }
  return Value(std::move(out));
}

Value xml_attributes(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("xmlattr", args, {"autospace"});
  if (!input.is_dict()) throw RenderError("xmlattr needs a dict, not '" + type_name(input) + "'");
  std::string out;
  for (const auto& [key, value] : input.dict().items()) {
    if (value.is_none() || value.is_undefined()) continue;
    if (!key.is_string()) throw RenderError("xmlattr needs text as keys, not '" + type_name(key) + "'");
    if (key.text().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      throw RenderError("Invalid character in attribute name: " + repr(key));
    }
    if (!out.empty()) out += ' ';
    out += escape_html(key) + "=\"" + escape_html(value) + "\"";
  }
  if (parameters.truth(0, true) && !out.empty()) out.insert(0, 1, ' ');
  return Value(std::move(out));
}

}  // namespace

FilterFunction find_text_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, FilterFunction> kFilters = {
      {"upper", mapped<to_upper>},
      {"lower", mapped<to_lower>},
      {"capitalize", mapped<capitalize>},
      {"title", mapped<title_words>},
      {"trim", trim},
      {"replace", replace},
      {"string", string},
      {"center", center},
      {"indent", indent},
      {"truncate", truncate},
      {"wordwrap", wordwrap},
      {"wordcount", wordcount},
      {"escape", escape},
      {"e", escape},
      {"forceescape", force_escape},
      {"safe", safe},
      {"striptags", striptags},
      {"format", format},
      {"urlencode", url_encode},
      {"xmlattr", xml_attributes},
  };
  const auto found = kFilters.find(name);
  return found == kFilters.end() ? nullptr : found->second;
}

}  // namespace cairn::tmpl
