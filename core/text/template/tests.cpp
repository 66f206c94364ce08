// The tests of `is`: defined, string, mapping, odd, sameas...
#include <algorithm>
#include <unordered_map>

#include "core/text/template/builtins.hpp"
#include "core/text/template/objects.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

void no_arguments(CallArgs& args) {
  const Parameters parameters("test", args, {});
}

template <bool (*kPredicate)(const Value&)>
bool plain(Interpreter&, const Value& value, CallArgs& args) {
  no_arguments(args);
  return kPredicate(value);
}

template <Comparison kComparison>
bool comparing(Interpreter&, const Value& value, CallArgs& args) {
  const Parameters parameters("test", args, {"other"}, 1);
  return compare(kComparison, value, parameters.at(0));
}

bool leaves(const Value& value, const Value& divisor, int64_t rest) {
  return equal(apply(BinaryOperator::kModulo, value, divisor), Value(rest));
}

bool is_odd(const Value& value) {
  return leaves(value, Value(2), 1);
}
bool is_even(const Value& value) {
  return leaves(value, Value(2), 0);
}
bool is_divisible(Interpreter&, const Value& value, CallArgs& args) {
  const Parameters parameters("divisibleby", args, {"num"}, 1);
  return leaves(value, parameters.at(0), 0);
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}
bool is_none(const Value& value) {
  return value.is_none();
}
bool is_boolean(const Value& value) {
  return value.is_bool();
}
bool is_false(const Value& value) {
  return value.is_bool() && !value.as_bool();
}
bool is_true(const Value& value) {
  return value.is_bool() && value.as_bool();
}
bool is_integer(const Value& value) {
  return value.is_int();
}
bool is_float(const Value& value) {
  return value.is_float();
}
bool is_number(const Value& value) {
  return value.is_number();
}
bool is_string(const Value& value) {
  return value.is_string();
}
bool is_mapping(const Value& value) {
  return value.is_dict();
}
bool is_escaped(const Value& value) {
  return value.is_markup();
}

bool is_iterable_value(const Value& value) {
  return is_iterable(value) || value.object_as<LoopObject>() != nullptr;
}

// What has a length and can be subscripted; an undefined value counts, as in jinja2.
bool is_sequence(const Value& value) {
  return value.is_string() || value.is_dict() || value.is_undefined() || value.is_list() || value.is_tuple() ||
         value.is_kind(SequenceKind::kRange);
}

bool is_callable(const Value& value) {
  return value.is_callable() || value.is_undefined();
}

bool has_case(const Value& value, bool (*wanted)(char32_t), bool (*refused)(char32_t)) {
  bool found = false;
  const std::string text = to_text(value);
  charge_work(text.size());
  for (char32_t code : decode(text)) {
    if (refused(code) || is_title(code)) return false;
    found = found || wanted(code);
  }
  return found;
}
bool is_lower_text(const Value& value) {
  return has_case(value, is_lower, is_upper);
}
bool is_upper_text(const Value& value) {
  return has_case(value, is_upper, is_lower);
}

// Python's `is`. Equal strings and numbers of one type count as the same object.
bool is_same(Interpreter&, const Value& value, CallArgs& args) {
  const Parameters parameters("sameas", args, {"other"}, 1);
  const Value& other = parameters.at(0);
  if (value.identity() || other.identity()) return value.identity() == other.identity();
  return type_name(value) == type_name(other) && equal(value, other);
}

// jinja2 looks the value up in a dict, which fails for a list.
bool is_filter(const Value& value) {
  hash_of(value);
  return value.is_string() && find_filter(value.text()) != nullptr;
}
bool is_test(const Value& value) {
  hash_of(value);
  return value.is_string() && find_test(value.text()) != nullptr;
}

}  // namespace

TestFunction find_test(std::string_view name) {
  static const std::unordered_map<std::string_view, TestFunction> kTests = {
      {"odd", plain<is_odd>},
      {"even", plain<is_even>},
      {"divisibleby", is_divisible},
      {"defined", plain<is_defined>},
      {"undefined", plain<is_undefined>},
      {"filter", plain<is_filter>},
      {"test", plain<is_test>},
      {"none", plain<is_none>},
      {"boolean", plain<is_boolean>},
      {"false", plain<is_false>},
      {"true", plain<is_true>},
      {"integer", plain<is_integer>},
      {"float", plain<is_float>},
      {"lower", plain<is_lower_text>},
      {"upper", plain<is_upper_text>},
      {"string", plain<is_string>},
      {"mapping", plain<is_mapping>},
      {"number", plain<is_number>},
      {"sequence", plain<is_sequence>},
      {"iterable", plain<is_iterable_value>},
      {"callable", plain<is_callable>},
      {"sameas", is_same},
      {"escaped", plain<is_escaped>},
      {"in", comparing<Comparison::kIn>},
      {"==", comparing<Comparison::kEqual>},
      {"eq", comparing<Comparison::kEqual>},
      {"equalto", comparing<Comparison::kEqual>},
      {"!=", comparing<Comparison::kNotEqual>},
      {"ne", comparing<Comparison::kNotEqual>},
      {">", comparing<Comparison::kGreater>},
      {"gt", comparing<Comparison::kGreater>},
      {"greaterthan", comparing<Comparison::kGreater>},
      {">=", comparing<Comparison::kGreaterEqual>},
      {"ge", comparing<Comparison::kGreaterEqual>},
      {"<", comparing<Comparison::kLess>},
      {"lt", comparing<Comparison::kLess>},
      {"lessthan", comparing<Comparison::kLess>},
      {"<=", comparing<Comparison::kLessEqual>},
      {"le", comparing<Comparison::kLessEqual>},
  };
  const auto found = kTests.find(name);
  return found == kTests.end() ? nullptr : found->second;
}

}  // namespace cairn::tmpl
