// Model: the class a plugin's model derives from (seed: M*'s Model). Conductor-side hooks are pure: they may be asked
// again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/model_description.hpp"
#include "cairn/node_table.hpp"

namespace cairn {

// Input tensors by signal; views the host gave are handed on without a copy.
using SignalTensors = std::map<Signal, TensorList>;

struct PromptPart {
  std::uint32_t modality = 0;
  std::string_view text;
  std::span<const std::int32_t> token_ids;
  Tensor media;
};

struct PromptArgs {
  std::string_view request_id;
  std::vector<PromptPart> parts;
  std::span<const std::uint32_t> output_modalities;
  ValueMap model_kwargs;
};

struct PromptResult {
  SignalTensors tensors;
  std::int64_t prompt_tokens = 0;
  ValueMap metadata;
};

struct InitialArgs {
  std::uint32_t partition = 0;
  std::span<const std::uint32_t> input_modalities;
  std::span<const std::uint32_t> output_modalities;
  SignalTensors input_signals;
  ValueMap prompt_metadata;
  ValueMap model_kwargs;
};

struct TransitionArgs {
  std::uint32_t partition = 0;
  CurrentForwardConductorMetadata metadata;
  SignalTensors persist_signals;
  std::vector<StreamingConnectionState> incoming_connections;
  std::int64_t fwd_index = 0;
  std::int64_t num_output_tokens = 0;
  std::span<const std::uint32_t> curr_forward_outputs;
};

// One input of a forward pass. Tensors must be the host's (from the arguments, or Tensor::create).
struct InputEdge {
  Signal signal = 0;
  std::uint32_t node = 0;
  TensorList tensors;
};

// What a partition does next.
struct ForwardPassArgs {
  CurrentForwardConductorMetadata full_metadata;
  std::vector<InputEdge> inputs;  // none and not done: the partition starts from its stream buffers
  std::vector<Signal> unpersist_tensors;
  bool request_done = false;
  ValueMap step_metadata;

  static ForwardPassArgs done(CurrentForwardConductorMetadata metadata) {
    ForwardPassArgs args;
    args.full_metadata = std::move(metadata);
    args.request_done = true;
    return args;
  }
};

// A request's config of one resource; `config` is one of abi.h's *_req_config structs with its struct_size set.
struct ResourceReqConfig {
  std::uint32_t resource = 0;
  std::uint32_t kind = 0;
  std::shared_ptr<const void> config;
  std::size_t size = 0;

  template <class Config>
  static ResourceReqConfig of(std::uint32_t resource, std::uint32_t kind, const Config& config) {
    return {resource, kind, std::make_shared<const Config>(config), sizeof(Config)};
  }
};

struct PostprocessArgs {
  std::string_view request_id;
  Request request = 0;
  std::uint32_t modality = 0;
  bool is_final = false;
  Tensor tensor;  // undefined when there is none
  ValueMap request_kwargs;
};

// What a model is opened with. The weights stay open until the model is closed; everything else is valid during open
// only.
struct OpenArgs {
  const cairn_open_args& raw;
  cairn_weights* weights = nullptr;  // nullptr: the deployment names none
  std::string name;
  ValueMap model_kwargs;
  std::int64_t max_seq_len = 0;  // 0: the model's own

  explicit OpenArgs(const cairn_open_args& args)
      : raw(args), weights(args.weights), name(cairn::text(args.name)), model_kwargs(args.model_kwargs) {
    if (args.struct_size >= CAIRN_SIZE(cairn_open_args, max_seq_len)) max_seq_len = args.max_seq_len;
  }
};

// Derive from it and add: static std::unique_ptr<Model> open(const OpenArgs&), and, when model_kwargs may have keys,
// static cairn_config_key_span config_schema().
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  static cairn_config_key_span config_schema() { return {}; }

  // The same answer every time; valid until close.
  virtual const cairn_model_desc* describe() = 0;
  virtual NodeHandle get_submodule(std::uint32_t node) = 0;

  virtual PromptResult process_prompt(const PromptArgs&) { throw unsupported("the model has no process_prompt"); }
  virtual ForwardPassArgs get_initial_forward_pass_args(const InitialArgs&) = 0;
  // After every completed walk of the partition. The default ends the request.
  virtual ForwardPassArgs get_partition_forward_pass_args(const TransitionArgs& args) {
    return ForwardPassArgs::done(args.metadata);
  }
  virtual std::vector<ResourceReqConfig> get_request_resource_configs(const cairn_request_config_args&) { return {}; }
  // Output tensor to client bytes.
  virtual std::string postprocess(const PostprocessArgs&) { throw unsupported("the model has no postprocess"); }
  virtual void request_closed(Request) {}
  virtual std::vector<cairn_prefix_stream> prefix_key_streams() { return {}; }
  virtual std::string checkpoint_path() { return {}; }

  // For the thunks: answers the host reads after the call.
  std::vector<cairn_prefix_stream> kept_prefix_streams;
  std::string kept_checkpoint_path;
};

}  // namespace cairn
