// The filters, tests, functions and methods that every template has. Used by the parser (to bind names) and the
// evaluator.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/template/value.hpp"

namespace cairn::tmpl {

using FilterFunction = Value (*)(Interpreter& interpreter, const Value& input, CallArgs& args);
using TestFunction = bool (*)(Interpreter& interpreter, const Value& input, CallArgs& args);
using MethodFunction = Value (*)(Interpreter& interpreter, const Value& self, CallArgs& args);

// Null when there is none of that name.
FilterFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);
MethodFunction find_method(const Value& self, std::string_view name);

// A method as a value of its own (`{% set up = text.upper %}`).
std::optional<Value> bind_method(const Value& self, std::string_view name);
// list.append and the like, which the immutable sandbox refuses.
bool is_mutating_method(const Value& self, std::string_view name);

// range, dict, namespace, cycler, joiner, raise_exception, strftime_now; nothing for another name.
std::optional<Value> find_global(std::string_view name);

// Binds a call's arguments to parameter names as Python does, so that each can be given by position or by name.
class Parameters {
 public:
  Parameters(std::string_view function, CallArgs& args, std::initializer_list<std::string_view> names,
             size_t required = 0);
  bool has(size_t i) const { return values_[i].has_value(); }
  const Value& at(size_t i) const { return *values_[i]; }
  Value get(size_t i, const Value& fallback) const { return has(i) ? at(i) : fallback; }
  // Throws RenderError when the argument is of another type.
  int64_t integer(size_t i, int64_t fallback) const;
  bool truth(size_t i, bool fallback) const { return has(i) ? at(i).truthy() : fallback; }
  // The text of a string argument; throws RenderError for another type.
  const std::string& text(size_t i) const;

 private:
  std::string function_;
  std::vector<std::string> names_;
  std::vector<std::optional<Value>> values_;
};

// "a.b.0" style attribute paths of map, selectattr, sort, groupby...
Value follow_path(const Value& item, const Value& path);

// Tables of the single files, joined by find_filter.
FilterFunction find_text_filter(std::string_view name);
FilterFunction find_sequence_filter(std::string_view name);
FilterFunction find_value_filter(std::string_view name);
MethodFunction find_text_method(std::string_view name);

}  // namespace cairn::tmpl
