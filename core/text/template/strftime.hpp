// Python's datetime.strftime for a time without a time zone. Used by strftime_now.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::tmpl {

// `unix_seconds` as UTC in the C locale. Throws RenderError for a time whose year is not of 1 to 9999.
std::string format_time(std::string_view format, int64_t unix_seconds);

}  // namespace cairn::tmpl
