// The Llama-type model: what the conductor sees of it. One node, a prefill walk and a decode loop.
#pragma once

#include <memory>
#include <vector>

#include "llama_node.hpp"

namespace llama {

class LlamaModel : public cairn::Model {
 public:
  static std::unique_ptr<cairn::Model> open(const cairn::OpenArgs& args);

  const cairn_model_desc* describe() override { return description_.get(); }
  cairn::NodeHandle get_submodule(std::uint32_t node) override;
  cairn::ForwardPassArgs get_initial_forward_pass_args(const cairn::InitialArgs& args) override;
  cairn::ForwardPassArgs get_partition_forward_pass_args(const cairn::TransitionArgs& args) override;

  LlamaModel(const cairn::OpenArgs& args, Config config);

 private:
  void describe_graph();
  void describe_resources();

  cairn_weights* weights_;
  Config config_;
  std::int64_t max_seq_len_;
  std::int64_t vocabulary_;
  std::vector<float> rope_factors_;
  std::vector<std::int32_t> end_tokens_;
  cairn::ModelDescription description_;
  Wiring wiring_;
  std::uint32_t llm_ = 0;
};

}  // namespace llama
