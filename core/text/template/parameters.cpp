// Binding a call's arguments to parameters, attribute paths, and the lookup over all filter tables.
#include <algorithm>

#include "core/text/template/builtins.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {

Parameters::Parameters(std::string_view function, CallArgs& args, std::initializer_list<std::string_view> names,
                       size_t required)
    : function_(function), names_(names.begin(), names.end()), values_(names.size()) {
  if (args.positional.size() > names.size()) {
    throw RenderError(function_ + "() takes at most " + std::to_string(names.size()) + " argument" +
                      (names.size() == 1 ? "" : "s") + " (" + std::to_string(args.positional.size()) + " given)");
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = std::move(args.positional[i]);
  for (auto& [name, value] : args.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      throw RenderError(function_ + "() got an unexpected keyword argument " + repr_text(name));
    }
    auto& slot = values_[static_cast<size_t>(found - names_.begin())];
    if (slot) throw RenderError(function_ + "() got multiple values for argument " + repr_text(name));
    slot = std::move(value);
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values_[i]) throw RenderError(function_ + "() is missing its argument '" + names_[i] + "'");
  }
}

int64_t Parameters::integer(size_t i, int64_t fallback) const {
  if (!has(i)) return fallback;
  if (at(i).is_undefined()) fail_undefined(at(i));
  if (!at(i).is_integral()) {
    throw RenderError(function_ + "() needs an integer for '" + names_[i] + "', not '" + type_name(at(i)) + "'");
  }
  return at(i).as_int();
}

const std::string& Parameters::text(size_t i) const {
  if (!at(i).is_string()) {
    throw RenderError(function_ + "() needs a string for '" + names_[i] + "', not '" + type_name(at(i)) + "'");
  }
  return at(i).text();
}

Value follow_path(const Value& item, const Value& path) {
  if (path.is_none()) return item;
  if (!path.is_string()) return get_item(item, path);
  Value value = item;
  std::string_view rest = path.text();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool number = !part.empty() && part.size() < 10 &&
                        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    value = get_item(value, number ? Value(std::stoi(std::string(part))) : Value(part));
    if (dot == std::string_view::npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

FilterFunction find_filter(std::string_view name) {
  if (const FilterFunction filter = find_text_filter(name)) return filter;
  if (const FilterFunction filter = find_sequence_filter(name)) return filter;
  return find_value_filter(name);
}

}  // namespace cairn::tmpl
