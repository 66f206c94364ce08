// Python's operators, subscripts and attribute access on template values. Used by the evaluator, filters and tests.
// Every function throws RenderError with Python's or Jinja's message when the operation does not exist for the values.
#pragma once

#include <string_view>

#include "core/text/template/value.hpp"

namespace cairn::tmpl {

enum class BinaryOperator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

Value apply(BinaryOperator op, const Value& left, const Value& right);
Value negate(const Value& value);
Value plus(const Value& value);
bool compare(Comparison op, const Value& left, const Value& right);
// Python's <, as sorting uses it.
bool less(const Value& left, const Value& right);
bool contains(const Value& container, const Value& item);

// obj.name and obj[key] with Jinja's fall-backs from one to the other; undefined when neither exists.
Value get_attribute(const Value& object, std::string_view name);
Value get_item(const Value& object, const Value& key);
// Only the attribute, without falling back to the item: what the `attr` filter does.
std::optional<Value> find_attribute(const Value& object, std::string_view name);
// obj[start:stop:step]; none stands for a bound that was left out.
Value get_slice(const Value& object, const Value& start, const Value& stop, const Value& step);

// left + right, refused before allocation when it would not fit.
std::string concatenate(std::string_view left, std::string_view right);
std::string repeat(std::string_view text, int64_t count);
// HTML-escapes a value's text, leaving text that is marked safe as it is.
std::string escape_html(const Value& value);

// The position of `needle` at or after `from` in time linear in the text (a hostile text cannot make it quadratic).
size_t find_text(std::string_view text, std::string_view needle, size_t from = 0);
size_t rfind_text(std::string_view text, std::string_view needle);

}  // namespace cairn::tmpl
