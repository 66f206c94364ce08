// JSON to Value: for the configuration files that lie beside weights, and for model_kwargs of requests.
// Used by the safetensors reader and the front end.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/value.hpp"

namespace cairn {

// Strict JSON, at most 64 levels deep and 4 million values. Integers that do not fit in 64 signed bits become doubles;
// of a repeated key the last value counts, as in Python. Throws BadFile with `name` and the byte offset.
Value parse_json_value(std::string_view text, const std::string& name);

// A parsed tree; its depth must be bounded by whoever parsed it. Integers over int64 become doubles.
Value to_value(const boost::json::value& value);

}  // namespace cairn
