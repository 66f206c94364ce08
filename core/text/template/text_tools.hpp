// Text operations that both string methods and filters are made of. Sizes are checked against the render's budget.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::tmpl {

// `characters` null strips white space.
std::string strip_text(std::string_view text, const std::string* characters, bool left, bool right);
std::string replace_text(std::string_view text, std::string_view from, std::string_view to, int64_t limit);
// `fill` is one character; with both sides the text is centered as str.center does.
std::string pad_text(std::string_view text, int64_t width, std::string_view fill, bool left, bool right);

// str.split and str.rsplit; a negative limit splits everywhere.
std::vector<std::string_view> split_space(std::string_view text, int64_t limit = -1);
std::vector<std::string_view> rsplit_space(std::string_view text, int64_t limit);
std::vector<std::string_view> split_text(std::string_view text, std::string_view separator, int64_t limit);
std::vector<std::string_view> rsplit_text(std::string_view text, std::string_view separator, int64_t limit);

}  // namespace cairn::tmpl
