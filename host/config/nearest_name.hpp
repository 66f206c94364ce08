// "did you mean": the known name closest to a misspelt one. Used by the deployment file and the OpenAI parameters.
#pragma once

#include <span>
#include <string_view>

namespace cairn {

// The known name with the smallest edit distance (insert, delete, replace, swap of neighbours), or an empty view when
// none is within `max_distance`. Names longer than 64 bytes are near nothing.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known, int max_distance);

}  // namespace cairn
