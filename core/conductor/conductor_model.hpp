// The model as the conductor sees it: M*'s process_prompt, get_initial_forward_pass_args,
// get_partition_forward_pass_args and get_request_resource_configs. Implemented over the C table by ModelAdapter and by
// tests in plain C++.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/value.hpp"
#include "core/conductor/forward_pass_args.hpp"
#include "core/conductor/request_configs.hpp"

namespace cairn {

struct PromptResult {
  std::vector<SignalTensors> tensors;
  std::int64_t prompt_tokens = 0;
  OwnedMap metadata;
};

struct InitialArgs {
  std::uint32_t partition = 0;
  std::span<const std::uint32_t> input_modalities;
  std::span<const std::uint32_t> output_modalities;
  std::span<const SignalTensors> input_signals;
  const cairn_map& prompt_metadata;
  const Value& model_kwargs;
};

// StreamingConnectionState of one incoming connection.
using ConnectionState = cairn_connection_state;

struct TransitionArgs {
  std::uint32_t partition = 0;
  const ConductorMetadata& metadata;  // of the walk that just ended
  std::span<const SignalTensors> persist_signals;
  std::span<const ConnectionState> incoming_connections;
  std::int64_t fwd_index = 0;
  std::int64_t num_output_tokens = 0;
  std::span<const std::uint32_t> curr_forward_outputs;  // signals
};

struct RequestConfigArgs {
  std::span<const ForwardPassArgs> partition_args;  // one per partition
  const Value& model_kwargs;
  const cairn_sampling_req_config& sampling;
  std::int64_t prompt_tokens = 0;
  std::int64_t max_tokens = 0;
};

// Indices of modality names. Throws InvalidArgument, which lists what the model has; `what` is "input" or "output".
std::vector<std::uint32_t> modality_indices(const std::vector<std::string>& names,
                                            const std::vector<std::string>& known, const char* what);

// Control thread, except process_prompt (pool: several at once). Every call either answers with something checked or
// throws: InvalidArgument (the request's fault), NotSupported, ResourceExhausted, InternalError (the plugin's fault).
class ConductorModel {
 public:
  virtual ~ConductorModel() = default;
  virtual PromptResult process_prompt(const RequestSpec& request) = 0;
  virtual ForwardPassArgs initial_forward_args(const InitialArgs& args) = 0;
  virtual ForwardPassArgs partition_forward_args(const TransitionArgs& args) = 0;
  virtual ResourceReqConfigs request_resource_configs(const RequestConfigArgs& args) = 0;
};

}  // namespace cairn
