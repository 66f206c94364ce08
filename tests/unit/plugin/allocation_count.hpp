// Counts this thread's heap allocations, for tests of paths that must not make any.
#pragma once

#include <cstdint>

namespace cairn {

// operator new calls of this thread since it started.
std::int64_t allocations_of_this_thread() noexcept;

}  // namespace cairn
