// Memory for packed weights: large chunks on huge pages where the system grants them, shared by many matrices. A model
// streams all its weights once per step, so address translation and page-crossing prefetch matter. Private to
// kernels/cpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cairn::kernels {

// `bytes` of 64-byte aligned memory, uninitialised; a chunk is freed with the last matrix in it. Any thread. Throws
// std::bad_alloc.
std::shared_ptr<std::uint8_t> allocate_weights(std::size_t bytes);

}  // namespace cairn::kernels
