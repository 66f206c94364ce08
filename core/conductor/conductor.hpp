// The conductor: one state machine per request and partition that asks the model what to run first and what to run
// after every completed walk, keeps what walks persist for each other, and counts tokens. Owned by the worker's main
// thread; starts no work itself: it answers with the walks to start.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/conductor/conductor_model.hpp"
#include "core/conductor/forward_info.hpp"
#include "core/graph/model_spec.hpp"
#include "core/runtime/model_runtime.hpp"

namespace cairn {

struct RequestStart {
  RequestHandle handle = 0;
  const RequestSpec& spec;
  PromptResult prompt;                    // of ConductorModel::process_prompt
  std::int64_t max_tokens = 0;            // resolved: > 0
  std::uint64_t seed = 0;                 // resolved: request_seed()
  std::vector<std::int32_t> stop_tokens;  // the model's and the tokenizer's end tokens and the client's
};

// A walk to run: reset a WalkState to the walk's plan, ingest the inputs, and report with on_walk_done when it is done.
struct WalkStart {
  std::uint32_t partition = 0;
  std::uint32_t walk = 0;
  std::int64_t fwd_index = 0;
  std::vector<RoutedInput> inputs;
};

// What a finished walk leaves.
struct WalkReport {
  std::span<SignalTensors> persisted;  // in order of arrival; values are moved away
  std::int64_t new_tokens = 0;         // WalkState::new_tokens
  std::uint64_t routed_signals = 0;    // WalkState::routed_signals
};

struct Transition {
  enum class Kind : std::uint8_t {
    kNextWalk,       // start `next`
    kPartitionDone,  // this partition is done, others are not
    kRequestDone     // every partition is done
  };
  Kind kind = Kind::kRequestDone;
  bool length_limit = false;  // done because max_tokens was reached
  WalkStart next;
};

// has_seed ? seed : the first four bytes, little-endian, of md5(id).
std::uint64_t request_seed(const SamplingParams& sampling, std::string_view id);

class Conductor {
 public:
  // Both must outlive the conductor.
  Conductor(const ModelSpec& spec, ConductorModel& model) : spec_(spec), model_(model) {}

  // Takes the request in and answers with its first walks; none when the model says it is done already
  // (request_done(handle) is true then). Throws what the model throws and InternalError for arguments that do not fit
  // the graph; nothing is kept of the request then. A handle in use is a bug and throws InternalError.
  std::vector<WalkStart> start_request(RequestStart start);

  // A walk is done. Throws what the model throws: the request must be failed with that message and ended.
  Transition on_walk_done(RequestHandle handle, std::uint32_t partition, const WalkReport& report);

  // Forgets the request and releases everything kept for it, in any state. Idempotent.
  void end_request(RequestHandle handle) noexcept;

  bool has_request(RequestHandle handle) const { return requests_.contains(handle); }
  bool request_done(RequestHandle handle) const;
  // Stable addresses until end_request. Throw InternalError for an unknown handle or partition.
  ForwardInfo& info(RequestHandle handle, std::uint32_t partition);
  const ResourceReqConfigs& resource_configs(RequestHandle handle) const;
  const cairn_sampling_req_config& sampling(RequestHandle handle) const;
  std::int64_t output_tokens(RequestHandle handle, std::uint32_t partition) const;

  std::size_t open_requests() const { return requests_.size(); }

 private:
  // PartitionState.
  struct Partition {
    std::unique_ptr<ForwardInfo> info;
    ConductorMetadata metadata;
    std::int64_t fwd_pass_number = 0;
    std::int64_t num_output_tokens = 0;
    std::vector<std::uint32_t> curr_forward_outputs;
    std::vector<SignalTensors> persisted;
    std::vector<ConnectionState> incoming;
    bool is_done = false;
  };
  struct Request {
    std::unique_ptr<RequestSampling> sampling;
    ResourceReqConfigs configs;
    std::vector<Partition> partitions;
    std::int64_t max_tokens = 0;
  };

  const Request& find(RequestHandle handle) const;
  Partition& find(RequestHandle handle, std::uint32_t partition);
  WalkStart begin_walk(std::uint32_t partition_index, Partition& partition, ForwardPassArgs args);
  static void drop_persisted(Partition& partition, std::span<const std::uint32_t> signals);
  void check_args(std::uint32_t partition, const ForwardPassArgs& args, const char* hook) const;

  const ModelSpec& spec_;
  ConductorModel& model_;
  std::unordered_map<RequestHandle, std::unique_ptr<Request>> requests_;
};

}  // namespace cairn
