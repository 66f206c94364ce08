// Filters on single values: default, int, float, round, tojson, attr, pprint...
#include <cmath>
#include <unordered_map>

#include "core/text/template/builtins.hpp"
#include "core/text/template/json_text.hpp"
#include "core/text/template/number_text.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/pretty_print.hpp"

namespace cairn::tmpl {
namespace {

Value absolute(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("abs", args, {});
  if (input.is_float()) return Value(std::fabs(input.as_float()));
  if (input.is_integral()) return input.as_int() < 0 ? negate(input) : Value(input.as_int());
  throw RenderError("bad operand type for abs(): '" + type_name(input) + "'");
}

Value attribute(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("attr", args, {"name"}, 1);
  const std::string& name = parameters.text(0);
  if (input.is_undefined()) fail_undefined(input);
  if (auto found = find_attribute(input, name)) return std::move(*found);
  return Value::undefined(repr_text(type_name(input) + " object") + " has no attribute " + repr_text(name));
}

Value default_value(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("default", args, {"default_value", "boolean"});
  const bool replace = input.is_undefined() || (parameters.truth(1, false) && !input.truthy());
  return replace ? parameters.get(0, Value("")) : input;
}

Value to_integer(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("int", args, {"default", "base"});
  Value fallback = parameters.get(0, Value(0));
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_integral()) return Value(input.as_int());
  if (input.is_float()) {
    if (std::isnan(input.as_float())) return fallback;
    return Value(float_to_integer(input.as_float()));
  }
  if (!input.is_string()) return fallback;
  if (const auto number = parse_integer(input.text(), parameters.integer(1, 10))) return Value(*number);
  const auto real = parse_float(input.text());
  if (!real || !std::isfinite(*real)) return fallback;
  return Value(float_to_integer(*real));
}

Value to_float(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("float", args, {"default"});
  Value fallback = parameters.get(0, Value(0.0));
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_number()) return Value(input.as_float());
  if (!input.is_string()) return fallback;
  const auto number = parse_float(input.text());
  return number ? Value(*number) : fallback;
}

// round() of Python: to nearest, ties to even on the number's exact value.
double round_float(double number, int64_t digits) {
  if (!std::isfinite(number) || number == 0.0) return number;
  if (digits > 330) return number;
  if (digits < -310) return std::copysign(0.0, number);
  if (digits >= 0) {
    char buffer[1024];
    std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(digits), number);
    return std::strtod(buffer, nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / scale) * scale;
}

// round(number, -digits) of an integer, ties to even.
Value round_integer(int64_t number, int64_t digits) {
  if (digits >= 0) return Value(number);
  if (digits < -18) return Value(0);
  int64_t scale = 1;
  for (int64_t i = 0; i < -digits; ++i) scale *= 10;
  int64_t rest = number % scale;
  if (rest < 0) rest += scale;
  const Value down = apply(BinaryOperator::kSubtract, Value(number), Value(rest));
  const bool odd = (down.as_int() / scale) % 2 != 0;
  const bool up = rest > scale / 2 || (rest == scale / 2 && odd);
  return up ? apply(BinaryOperator::kAdd, down, Value(scale)) : down;
}

Value round(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("round", args, {"precision", "method"});
  const int64_t digits = parameters.integer(0, 0);
  const std::string method = parameters.has(1) ? to_text(parameters.at(1)) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    throw RenderError("method must be common, ceil or floor");
  }
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is_number()) throw RenderError("type " + type_name(input) + " doesn't define __round__ method");
  if (method == "common") {
    if (input.is_integral()) return round_integer(input.as_int(), digits);
    return Value(round_float(input.as_float(), digits));
  }
  const Value scale = apply(BinaryOperator::kPower, Value(10), Value(digits));
  const Value scaled = apply(BinaryOperator::kMultiply, input, scale);
  Value whole = scaled;
  if (scaled.is_float()) {
    const double number = scaled.as_float();
    whole = Value(method == "ceil" ? std::ceil(number) : std::floor(number));
  }
  return apply(BinaryOperator::kDivide, whole, scale);
}

Value file_size(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("filesizeformat", args, {"binary"});
  const bool binary = parameters.truth(0, false);
  double bytes = 0;
  if (input.is_number()) {
    bytes = input.as_float();
  } else {
    if (input.is_undefined()) fail_undefined(input);
    const auto parsed = input.is_string() ? parse_float(input.text()) : std::nullopt;
    if (!parsed) throw RenderError("could not convert string to float: " + repr(input));
    bytes = *parsed;
  }
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Value("1 Byte");
  if (bytes < base) return Value(std::to_string(float_to_integer(bytes)) + " Bytes");
  const std::string prefixes = binary ? "KMGTPEZY" : "kMGTPEZY";
  double unit = base;
  char prefix = 0;
  for (char one : prefixes) {
    unit *= base;
    prefix = one;
    if (bytes < unit) break;
  }
  return Value(format_float(base * bytes / unit, 'f', NumberStyle{'-', false, 1}) + " " + prefix +
               (binary ? "iB" : "B"));
}

Value to_json_filter(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = parameters.truth(0, false);
  style.sort_keys = parameters.truth(3, false);
  if (parameters.has(1) && !parameters.at(1).is_none()) {
    style.indent = parameters.at(1).is_string() ? parameters.at(1).text() : repeat(" ", parameters.integer(1, 0));
    style.item_separator = ",";
  }
  if (parameters.has(2) && !parameters.at(2).is_none()) {
    const std::vector<Value> both = iterate(parameters.at(2));
    if (both.size() != 2 || !both[0].is_string() || !both[1].is_string()) {
      throw RenderError("tojson needs two strings as separators");
    }
    style.item_separator = both[0].text();
    style.key_separator = both[1].text();
  }
  return Value(to_json(input, style));
}

Value pprint(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("pprint", args, {});
  return Value(pretty_print(input));
}

Value refuse_random(Interpreter&, const Value&, CallArgs&) {
  throw RenderError("'random' gives a different prompt each time and is not supported in chat templates");
}

}  // namespace

FilterFunction find_value_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, FilterFunction> kFilters = {
      {"abs", absolute},          {"attr", attribute}, {"default", default_value}, {"d", default_value},
      {"int", to_integer},        {"float", to_float}, {"round", round},           {"filesizeformat", file_size},
      {"tojson", to_json_filter}, {"pprint", pprint},  {"random", refuse_random},
  };
  const auto found = kFilters.find(name);
  return found == kFilters.end() ? nullptr : found->second;
}

}  // namespace cairn::tmpl
