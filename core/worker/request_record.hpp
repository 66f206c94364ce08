// Everything the worker keeps of one request between submit and finish. Slots are recycled: buffers keep their size.
// Device thread only, except the fields named atomic.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/conductor/conductor.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/walk_state.hpp"
#include "core/plugin/arena.hpp"
#include "core/runtime/model_runtime.hpp"

namespace cairn {

// A request as submit() made it ready: process_prompt has run, limits are resolved.
struct IncomingRequest {
  RequestHandle handle = 0;
  RequestSpec spec;
  std::unique_ptr<OutputSink> sink;
  PromptResult prompt;
  std::int64_t max_tokens = 0;
  std::vector<std::int32_t> end_tokens;  // tokens that end it: the model's, unless ignored, and the client's
};

struct RequestRecord {
  enum class Phase : std::uint8_t { kFree, kQueued, kRunning };

  Phase phase = Phase::kFree;
  RequestHandle handle = 0;
  RequestSpec spec;
  std::unique_ptr<OutputSink> sink;
  std::int64_t max_tokens = 0;
  std::int64_t prompt_tokens = 0;
  std::vector<std::int32_t> end_tokens;
  PromptResult prompt;  // until the conductor takes it

  // The walk that runs (of the one partition).
  WalkState state;
  ForwardInfo* info = nullptr;  // the conductor's, of the partition
  std::uint32_t partition = 0;
  std::uint32_t walk = 0;
  bool first_walk = true;  // the walk that carries the prompt
  bool fresh_walk = true;  // no node of the walk has completed yet
  std::vector<SignalTensors> persisted;

  // Inputs prepared for a row that is cut into chunks; they live in `arena` until its last chunk has run.
  Arena arena{std::size_t{4} << 10U};
  bool prepared = false;
  std::uint32_t prepared_node = 0;
  cairn_node_inputs inputs{};
  std::int64_t chunk_done = 0;

  std::int64_t delivered = 0;    // output tokens given to the sink
  std::int32_t stop_token = -1;  // the end token that was sampled
  bool reached_max = false;
};

}  // namespace cairn
