// The one node of a Llama-type model: embedding, layers, head and sampling for a packed batch of prompt chunks and
// decode rows. A step allocates nothing: every buffer is the step's arena.
#pragma once

#include <memory>
#include <vector>

#include "cairn/cairn.hpp"
#include "config.hpp"
#include "weights.hpp"

namespace llama {

// Indices of the model description that the node needs.
struct Wiring {
  cairn::Signal text_inputs = 0;
  cairn::Signal new_token = 0;
  cairn::Walk prefill = 0;
  cairn::Walk decode = 0;
  cairn::LoopIndex decode_loop = 0;
  std::uint32_t main_label = 0;
  std::uint32_t kv = 0;
  std::uint32_t attention = 0;
  std::uint32_t position = 0;
  std::uint32_t sampler = 0;
};

class LlamaNode : public cairn::ARNodeSubmodule {
 public:
  LlamaNode(const Config& config, const Wiring& wiring, std::int64_t vocabulary, std::vector<std::int32_t> end_tokens,
            Weights weights);

  void bind_node_resources(const cairn::NodeResources& resources) override;
  void prepare_rows(cairn_row_signals_span rows, const cairn::Arena& arena, cairn::OutRows out) override;
  bool can_batch_rows(const cairn_engine_inputs&) override { return true; }
  const cairn_step* declare_rows(const cairn_engine_inputs& inputs) override;
  void forward_rows(const cairn_engine_inputs& inputs, cairn_named_tensor_span tensors, bool batched,
                    cairn_batched_output& out) override;
  bool check_stop_rows(const cairn_host_rows& rows, cairn_stop_check* results) override;
  std::map<cairn::Signal, cairn::Signal> inline_client_signals(cairn::Walk walk) override;

 private:
  struct Step;
  void attend(const Step& step, std::size_t index) const;
  void feed_forward(const Step& step, const Layer& layer) const;
  void sample(const Step& step, const cairn_tensor_view& hidden, const cairn_tensor_view& tokens) const;
  bool ends(std::int32_t token, const cairn_forward_info* info) const;

  Config config_;
  Wiring wiring_;
  std::int64_t vocabulary_;
  std::vector<std::int32_t> end_tokens_;
  Weights weights_;
  const cairn_ops_service* ops_;
  cairn::Attention attention_;
  cairn::Position position_;
  cairn::Sampler sampler_;
};

}  // namespace llama
