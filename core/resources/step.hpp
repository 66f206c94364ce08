// What a resource learns of one step: its rows, its declared segments, and where to put what it plans.
// Used by the engine, which fills it, and by every resource. Owned by the device thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "cairn/abi.h"
#include "core/plugin/arena.hpp"
#include "core/runtime/model_runtime.hpp"
#include "kernels/cpu/parallel.hpp"

namespace cairn {

// A request handle is (generation << 32) | slot; resources keep their per-request state in arrays indexed by slot.
inline std::uint32_t slot_of(RequestHandle handle) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(handle) & 0xffffffffU);
}
inline RequestHandle make_handle(std::uint32_t slot, std::uint32_t generation) {
  return static_cast<RequestHandle>((static_cast<std::uint64_t>(generation) << 32U) | slot);
}

// One real row of the step. `prompt` rows carry tokens [chunk_start, chunk_end) of their prompt; a row that is not the
// last chunk neither samples nor routes.
struct StepRow {
  RequestHandle request = 0;
  std::int64_t chunk_start = 0;
  std::int64_t chunk_end = 0;
  bool prompt = false;
  bool last_chunk = true;
};

// One step in flight. cairn_step_context is this object on the plugin's side.
struct StepContext {
  std::span<const StepRow> rows;
  Arena* arena = nullptr;
  const kernels::Parallel* parallel = nullptr;
  const std::atomic<bool>* abort = nullptr;  // turns true when the step should be given up
  bool in_forward = false;                   // resource calls are legal only now

  cairn_step_context* handle() { return reinterpret_cast<cairn_step_context*>(this); }
  static StepContext* from_handle(cairn_step_context* handle) { return reinterpret_cast<StepContext*>(handle); }
};

// `count` value-initialised elements from the arena, as a span.
template <class T>
std::span<T> arena_span(Arena& arena, std::size_t count) {
  return {arena.array<T>(count), count};
}

// One resource's part of a declared step: segments in packed order, and the kind's step struct (may be null).
struct ResourceStep {
  std::span<const cairn_segment> segments;
  const void* detail = nullptr;
};

}  // namespace cairn
