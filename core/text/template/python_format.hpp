// Python's two ways to format text: "%s" % value and "{}".format(value). Used by the % operator and the format filter.
#pragma once

#include "core/text/template/value.hpp"

namespace cairn::tmpl {

Value percent_format(const Value& format, const Value& arguments);
Value brace_format(const Value& format, CallArgs& args);

}  // namespace cairn::tmpl
