// Python's pprint.pformat, for the pprint filter.
#pragma once

#include <string>

#include "core/text/template/value.hpp"

namespace cairn::tmpl {

// On one line when that fits 80 columns, else one item per line; dict keys sorted. Long strings are not cut.
std::string pretty_print(const Value& value);

}  // namespace cairn::tmpl
