#include "host/config/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace cairn {
namespace {

constexpr std::size_t kMaxName = 64;

// Optimal string alignment distance; both names are at most kMaxName long.
int edit_distance(std::string_view a, std::string_view b) {
  std::array<std::array<int, kMaxName + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& above2 = rows[(i + 1) % 3];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], above2[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known, int max_distance) {
  std::string_view best;
  int best_distance = max_distance + 1;
  if (name.size() > kMaxName) return best;
  for (const auto candidate : known) {
    if (candidate.size() > kMaxName) continue;
    const int distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace cairn
