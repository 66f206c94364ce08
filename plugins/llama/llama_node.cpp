#include "llama_node.hpp"

#include <algorithm>
#include <cstring>

namespace llama {
namespace {

using cairn::check;

// A float32 view of a buffer with its own shape and strides; passed to one call after the other, never copied.
class View {
 public:
  // `rows` rows of `columns` floats, `row_stride` floats apart.
  View(float* data, std::int64_t rows, std::int64_t columns, std::int64_t row_stride)
      : shape_{rows, columns, 0}, strides_{row_stride, 1, 0} {
    init(data, 2);
  }
  View(float* data, std::int64_t rows, std::int64_t columns) : View(data, rows, columns, columns) {}
  // `tokens` tokens of `heads` heads of `head_dim` floats, cut out of rows that are `token_stride` floats long.
  View(float* data, std::int64_t tokens, std::int64_t heads, std::int64_t head_dim, std::int64_t token_stride)
      : shape_{tokens, heads, head_dim}, strides_{token_stride, head_dim, 1} {
    init(data, 3);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  const cairn_tensor_view* get() const { return &view_; }
  operator const cairn_tensor_view&() const { return view_; }

 private:
  void init(float* data, std::int32_t ndim) {
    view_.data = data;
    view_.device = {CAIRN_DEVICE_CPU, 0};
    view_.ndim = ndim;
    view_.dtype = cairn::kFloat32;
    view_.shape = shape_;
    view_.strides = strides_;
  }
  std::int64_t shape_[3];
  std::int64_t strides_[3];
  cairn_tensor_view view_{};
};

const cairn_tensor_view* view_of(const std::optional<cairn::Tensor>& tensor) {
  return tensor ? tensor->view() : nullptr;
}

}  // namespace

// The buffers of one step, all float32 [tokens, ...].
struct LlamaNode::Step {
  cairn_step_context* context;
  cairn::Arena arena;
  std::int64_t tokens;
  float* residual;  // [tokens, hidden]
  float* normed;    // [tokens, hidden]
  float* qkv;       // [tokens, q + 2 kv]
  float* attended;  // [tokens, q]
  float* gated;     // [tokens, ffn]

  static float* buffer(const cairn::Arena& arena, std::int64_t rows, std::int64_t columns) {
    return static_cast<float*>(arena.allocate(static_cast<std::size_t>(rows * columns) * sizeof(float), 64));
  }
  Step(const cairn_engine_inputs& inputs, std::int64_t total, const Config& config)
      : context(inputs.context),
        arena(inputs.arena),
        tokens(total),
        residual(buffer(arena, total, config.hidden)),
        normed(buffer(arena, total, config.hidden)),
        qkv(buffer(arena, total, config.q_size() + 2 * config.kv_size())),
        attended(buffer(arena, total, config.q_size())),
        gated(buffer(arena, total, config.ffn)) {}
};

LlamaNode::LlamaNode(const Config& config, const Wiring& wiring, std::int64_t vocabulary,
                     std::vector<std::int32_t> end_tokens, Weights weights)
    : config_(config),
      wiring_(wiring),
      vocabulary_(vocabulary),
      end_tokens_(std::move(end_tokens)),
      weights_(std::move(weights)),
      ops_(cairn::services().ops) {
  if (!CAIRN_HAS(ops_, cairn_ops_service, gated)) throw cairn::unsupported("this host has no service cairn.ops");
}

void LlamaNode::bind_node_resources(const cairn::NodeResources& resources) {
  NodeSubmodule::bind_node_resources(resources);
  attention_ = cairn::Attention(resources.at("attn"));
  position_ = cairn::Position(resources.at("rope"));
  sampler_ = cairn::Sampler(resources.at("sampler"));
}

void LlamaNode::prepare_rows(cairn_row_signals_span rows, const cairn::Arena&, cairn::OutRows out) {
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    cairn_node_inputs& row = out[i];
    for (const auto& signal : cairn::elements(cairn::elements(rows)[i].inputs)) {
      if (signal.signal == wiring_.text_inputs && signal.tensors.count > 0) row.input_ids = *signal.tensors.data;
    }
    const cairn_tensor_view& ids = row.input_ids;
    if (ids.shape == nullptr || ids.ndim != 1 || ids.shape[0] < 1 || ids.dtype.code != CAIRN_DTYPE_INT ||
        ids.dtype.bits != 32) {
      row.row_status = CAIRN_ROW_FAILED;
      row.error = cairn::str("text_inputs must be one int32 tensor of at least one token");
      continue;
    }
    row.input_seq_len = ids.shape[0];
  }
}

const cairn_step* LlamaNode::declare_rows(const cairn_engine_inputs& inputs) {
  const cairn::Arena arena(inputs.arena);
  const auto rows = cairn::elements(inputs.inputs);
  const auto segments = arena.make<cairn_segment>(inputs.row_count);
  const auto tracked = arena.make<cairn_tracked_tokens>(inputs.row_count);
  std::size_t prefill_rows = 0;
  for (std::uint32_t i = 0; i < inputs.row_count; ++i) {
    segments[i] = {inputs.request_ids[i], wiring_.main_label, i, rows[i].input_seq_len};
    if (rows[i].graph_walk == wiring_.prefill) tracked[prefill_rows++] = {inputs.request_ids[i], rows[i].input_ids};
  }
  auto* sampler_step = arena.make_one<cairn_sampler_step>();
  sampler_step->struct_size = CAIRN_SIZE(cairn_sampler_step, prefill_tracked_tokens);
  sampler_step->prefill_tracked_tokens = cairn::span_of<cairn_tracked_tokens_span>(tracked.data(), prefill_rows);

  // The defaults of the other three are what a decoder wants: commit, causal, positions that count on.
  const auto steps = arena.make<cairn_resource_step>(4);
  steps[0].resource = wiring_.kv;
  steps[1].resource = wiring_.attention;
  steps[2].resource = wiring_.position;
  steps[3].resource = wiring_.sampler;
  steps[3].detail = sampler_step;

  auto* step = arena.make_one<cairn_step>();
  step->struct_size = CAIRN_SIZE(cairn_step, cg_key_info);
  step->segments = cairn::span_of<cairn_segment_span>(segments.data(), segments.size());
  step->steps = cairn::span_of<cairn_resource_step_span>(steps.data(), steps.size());
  return step;
}

void LlamaNode::forward_rows(const cairn_engine_inputs& inputs, cairn_named_tensor_span, bool,
                             cairn_batched_output& out) {
  const cairn::Arena arena(inputs.arena);
  const auto rows = cairn::elements(inputs.inputs);
  std::int64_t tokens = 0;
  for (const auto& row : rows) tokens += row.input_seq_len;

  const cairn_tensor_view ids = arena.tensor(cairn::kInt32, {tokens});
  auto* to = static_cast<std::int32_t*>(ids.data);
  for (const auto& row : rows) {
    const char* from = static_cast<const char*>(row.input_ids.data) + row.input_ids.byte_offset;
    std::memcpy(to, from, static_cast<std::size_t>(row.input_seq_len) * sizeof(std::int32_t));
    to += row.input_seq_len;
  }

  Step step(inputs, tokens, config_);
  check(ops_->embedding(weights_.embedding.get(), &ids, View(step.residual, tokens, config_.hidden).get()));
  for (std::size_t i = 0; i + 1 < weights_.layers.size(); ++i) {
    attend(step, i);
    check(ops_->linear(weights_.layers[i].o.get(), View(step.attended, tokens, config_.q_size()).get(),
                       view_of(weights_.layers[i].o_bias), 1, View(step.residual, tokens, config_.hidden).get()));
    feed_forward(step, weights_.layers[i]);
  }

  // Behind the last attention only the rows that need logits go on: none of a prompt's inner chunks, one per decode
  // row.
  attend(step, weights_.layers.size() - 1);
  const cairn_tensor_view new_tokens = arena.tensor(cairn::kInt32, {static_cast<std::int64_t>(inputs.row_count)});
  std::fill_n(static_cast<std::int32_t*>(new_tokens.data), inputs.row_count, -1);
  const std::int64_t selected = sampler_.num_logit_rows(inputs.context);
  if (selected > 0) {
    Step last = step;
    last.tokens = selected;
    last.residual = Step::buffer(arena, selected, config_.hidden);
    last.attended = Step::buffer(arena, selected, config_.q_size());
    const View hidden(last.residual, selected, config_.hidden);
    const View attended(last.attended, selected, config_.q_size());
    // Also when every token is selected: the order of the rows is the sampler's.
    sampler_.select_hidden(inputs.context, View(step.residual, tokens, config_.hidden), hidden);
    sampler_.select_hidden(inputs.context, View(step.attended, tokens, config_.q_size()), attended);
    const Layer& layer = weights_.layers.back();
    check(ops_->linear(layer.o.get(), attended.get(), view_of(layer.o_bias), 1, hidden.get()));
    feed_forward(last, layer);
    sample(last, hidden, new_tokens);
  }

  // One batch tensor is everything: what the client gets, what the next step reads, what the stop check looks at.
  const auto outputs = arena.make<cairn_batch_tensor>(2);
  outputs[0] = {wiring_.new_token, 0, new_tokens};
  outputs[1] = {wiring_.text_inputs, 0, new_tokens};
  out.row_outputs = cairn::span_of<cairn_batch_tensor_span>(outputs.data(), 2);
  out.check_stop_buffers = cairn::span_of<cairn_batch_tensor_span>(outputs.data(), 1);
}

// residual -> attended, of layer `index`.
void LlamaNode::attend(const Step& step, std::size_t index) const {
  const Layer& layer = weights_.layers[index];
  const std::int64_t q_size = config_.q_size(), kv_size = config_.kv_size(), width = q_size + 2 * kv_size;
  const std::int64_t tokens = step.tokens, head_dim = config_.head_dim;
  const View normed(step.normed, tokens, config_.hidden);
  check(ops_->rms_norm(View(step.residual, tokens, config_.hidden).get(), layer.attn_norm.view(), config_.norm_eps,
                       normed.get()));
  check(ops_->linear(layer.qkv.get(), normed.get(), view_of(layer.qkv_bias), 0, View(step.qkv, tokens, width).get()));

  const View q(step.qkv, tokens, config_.heads, head_dim, width);
  const View k(step.qkv + q_size, tokens, config_.kv_heads, head_dim, width);
  const View v(step.qkv + q_size + kv_size, tokens, config_.kv_heads, head_dim, width);
  if (layer.q_norm) check(ops_->rms_norm(q.get(), layer.q_norm->view(), config_.norm_eps, q.get()));
  if (layer.k_norm) check(ops_->rms_norm(k.get(), layer.k_norm->view(), config_.norm_eps, k.get()));
  position_.apply_qk(step.context, wiring_.main_label, q, k);
  attention_.run(step.context, static_cast<std::int64_t>(index), wiring_.main_label, q, k, v,
                 View(step.attended, tokens, config_.heads, head_dim, q_size));
}

// residual += down(act(gate) * up)
void LlamaNode::feed_forward(const Step& step, const Layer& layer) const {
  const View residual(step.residual, step.tokens, config_.hidden);
  const View normed(step.normed, step.tokens, config_.hidden);
  const View gated(step.gated, step.tokens, config_.ffn);
  check(ops_->rms_norm(residual.get(), layer.ffn_norm.view(), config_.norm_eps, normed.get()));
  check(ops_->linear_gated(layer.gate_up.get(), normed.get(), config_.activation, gated.get()));
  check(ops_->linear(layer.down.get(), gated.get(), nullptr, 1, residual.get()));
}

void LlamaNode::sample(const Step& step, const cairn_tensor_view& hidden, const cairn_tensor_view& tokens) const {
  const View normed(step.normed, step.tokens, config_.hidden);
  const View logits(Step::buffer(step.arena, step.tokens, vocabulary_), step.tokens, vocabulary_);
  check(ops_->rms_norm(&hidden, weights_.output_norm.view(), config_.norm_eps, normed.get()));
  check(ops_->linear(weights_.head(), normed.get(), nullptr, 0, logits.get()));
  sampler_.sample(step.context, logits, tokens);
}

bool LlamaNode::ends(std::int32_t token, const cairn_forward_info* info) const {
  const cairn_sampling_req_config* sampling = nullptr;
  if (CAIRN_HAS(info, cairn_forward_info, resource_configs)) {
    for (const auto& config : cairn::elements(info->resource_configs)) {
      if (config.resource == wiring_.sampler) {
        sampling = static_cast<const cairn_sampling_req_config*>(config.config);
      }
    }
  }
  if (CAIRN_HAS(sampling, cairn_sampling_req_config, stop_tokens)) {
    for (std::int32_t stop : cairn::elements(sampling->stop_tokens)) {
      if (stop == token) return true;
    }
  }
  if (CAIRN_HAS(sampling, cairn_sampling_req_config, ignore_eos) && sampling->ignore_eos != 0) return false;
  return std::ranges::find(end_tokens_, token) != end_tokens_.end();
}

bool LlamaNode::check_stop_rows(const cairn_host_rows& rows, cairn_stop_check* results) {
  for (const auto& buffer : cairn::elements(rows.buffers)) {
    if (buffer.signal != wiring_.new_token) continue;
    const auto* tokens =
        reinterpret_cast<const std::int32_t*>(static_cast<const char*>(buffer.view.data) + buffer.view.byte_offset);
    for (std::uint32_t i = 0; i < rows.row_count; ++i) {
      // The first token comes from the prefill walk, which has no loop to stop: the host ends such a request.
      const bool looping = rows.infos[i] != nullptr && rows.infos[i]->graph_walk == wiring_.decode;
      if (looping && tokens[i] >= 0 && ends(tokens[i], rows.infos[i])) {
        results[i].stops = std::uint64_t{1} << wiring_.decode_loop;
      }
    }
  }
  return true;
}

std::map<cairn::Signal, cairn::Signal> LlamaNode::inline_client_signals(cairn::Walk walk) {
  // prefill's edge is persisted, so its value must stay a tensor.
  if (walk != wiring_.decode) return {};
  return {{wiring_.new_token, wiring_.new_token}};
}

}  // namespace llama
