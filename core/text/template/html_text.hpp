// HTML and URL text for the striptags and urlencode filters.
#pragma once

#include <string>
#include <string_view>

namespace cairn::tmpl {

// Without comments and tags, white space collapsed, character references resolved.
std::string strip_tags(std::string_view text);
// Percent encoding; in a query a space becomes '+' and '/' is encoded too.
std::string quote_url(std::string_view text, bool in_query);

}  // namespace cairn::tmpl
