// Python's json.dumps for template values, as the tojson filter of chat templates calls it.
#pragma once

#include <optional>
#include <string>

#include "core/text/template/value.hpp"

namespace cairn::tmpl {

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // one level's white space; all on one line when absent
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Throws RenderError for a value that JSON cannot hold (undefined, macros...).
std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace cairn::tmpl
