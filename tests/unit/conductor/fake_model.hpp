// A model for conductor tests: prefill, then decode walks of one node each; answers what the test says and records what
// it was asked.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/conductor/conductor.hpp"
#include "tests/unit/graph/walk_harness.hpp"

namespace cairn::testing {

inline constexpr std::uint32_t kPrefill = 0, kDecode = 1;
inline constexpr std::uint32_t kLlm = 0;
inline constexpr std::uint32_t kIds = 0, kNewToken = 1;

// Two walks over one node with one sampler: prefill waits for ids, decode for a token.
inline ModelBuilder two_walk_model() {
  ModelBuilder model({"ids", "token"}, {"llm"}, {"loop"});
  model.walk("prefill").node(kLlm, {kIds}, {{kNewToken, kEmit, CAIRN_EDGE_NEW_TOKEN | CAIRN_EDGE_PERSIST}});
  WalkBuilder& decode = model.walk("decode");
  decode.loop(decode.node(kLlm, {kNewToken}, {{kNewToken, kLlm}, {kNewToken, kEmit, CAIRN_EDGE_NEW_TOKEN}}), 1000, 0);
  return model;
}

inline ForwardPassArgs start_walk(std::uint32_t walk, std::uint32_t signal, std::int32_t value) {
  ForwardPassArgs args;
  args.metadata.graph_walk = walk;
  args.metadata.is_prefill = walk == kPrefill;
  args.inputs.push_back({kLlm, signal, number(value)});
  return args;
}

inline ForwardPassArgs done_args() {
  ForwardPassArgs args;
  args.request_done = true;
  return args;
}

class FakeModel final : public ConductorModel {
 public:
  PromptResult process_prompt(const RequestSpec&) override { return {}; }
  ForwardPassArgs initial_forward_args(const InitialArgs& args) override {
    asked_modalities.assign(args.input_modalities.begin(), args.input_modalities.end());
    asked_input_signals = args.input_signals.size();
    if (!failure.empty()) throw InvalidArgument(failure);
    return std::move(initial);
  }
  ForwardPassArgs partition_forward_args(const TransitionArgs& args) override {
    std::string line = "walk " + std::to_string(args.metadata.graph_walk) + " fwd " + std::to_string(args.fwd_index) +
                       " tokens " + std::to_string(args.num_output_tokens) + " outputs";
    for (const std::uint32_t signal : args.curr_forward_outputs) line += ' ' + std::to_string(signal);
    line += " persisted";
    for (const SignalTensors& tensors : args.persist_signals) {
      line += ' ' + std::to_string(tensors.signal) + '=' + show(tensors.value);
    }
    transitions.push_back(line);
    if (!failure.empty()) throw InternalError(failure);
    ForwardPassArgs next = std::move(answers.front());
    answers.pop_front();
    return next;
  }
  ResourceReqConfigs request_resource_configs(const RequestConfigArgs& args) override {
    ++config_calls;
    return ResourceReqConfigs::defaults(*spec, args.sampling, args.prompt_tokens, args.max_tokens);
  }

  const ModelSpec* spec = nullptr;
  ForwardPassArgs initial = start_walk(kPrefill, kIds, 1);
  std::deque<ForwardPassArgs> answers;
  std::string failure;  // when not empty: every hook throws it
  std::vector<std::string> transitions;
  std::vector<std::uint32_t> asked_modalities;
  std::size_t asked_input_signals = 0;
  int config_calls = 0;
};

}  // namespace cairn::testing
