// JSON of requests as template values. Used by ChatTemplate.
#pragma once

#include <boost/json/value.hpp>

#include "core/text/template/value.hpp"

namespace cairn::tmpl {

// Throws RenderError for text that is not UTF-8, integers beyond 64 bits and nesting beyond kMaxValueDepth.
Value from_json(const boost::json::value& json);

}  // namespace cairn::tmpl
