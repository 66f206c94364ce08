#include "llama_model.hpp"

#include <algorithm>

CAIRN_PLUGIN(llama::LlamaModel, "ai.cairn.llama", "0.1.0", "Cairn", "cairn.ops/1 cairn.tensor/1 cairn.weights/1",
             "cairn.progress/1 cairn.tokenizer/1", "llama mistral qwen2 qwen3");

namespace llama {
namespace {

std::int64_t serving_length(const cairn::OpenArgs& args, const Config& config) {
  if (args.max_seq_len <= 0) return config.context;
  if (args.max_seq_len > config.context) {
    throw cairn::invalid_argument("the deployment asks for max_seq_len " + std::to_string(args.max_seq_len) +
                                  ", but the model's context is " + std::to_string(config.context) + " tokens");
  }
  return args.max_seq_len;
}

// The tokens that end generation: those the metadata names and those of the tokenizer, if the weights carry one.
std::vector<std::int32_t> all_end_tokens(const cairn_weights* weights, const Config& config, std::uint32_t& text) {
  std::vector<std::int32_t> ends = config.end_tokens;
  const cairn_tokenizer_service* service = cairn::services().tokenizer;
  const cairn_tokenizer* tokenizer = nullptr;
  text = CAIRN_TEXT_VOCABULARY;
  if (CAIRN_HAS(service, cairn_tokenizer_service, end_tokens)) {
    if (service->get(weights, &tokenizer) == CAIRN_STATUS_OK) {
      for (std::int32_t id : cairn::elements(service->end_tokens(tokenizer))) ends.push_back(id);
    } else {
      text = CAIRN_TEXT_NONE;  // prompts can still be given as ids
    }
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

}  // namespace

std::unique_ptr<cairn::Model> LlamaModel::open(const cairn::OpenArgs& args) {
  if (args.weights == nullptr) {
    throw cairn::invalid_argument("the llama plugin needs weights; name a GGUF file or a Hugging Face directory");
  }
  return std::make_unique<LlamaModel>(args, read_config(Metadata(args.weights)));
}

LlamaModel::LlamaModel(const cairn::OpenArgs& args, Config config)
    : weights_(args.weights),
      config_(std::move(config)),
      max_seq_len_(serving_length(args, config_)),
      vocabulary_(vocabulary_size(weights_, config_)),
      rope_factors_(rope_factors(weights_, config_)),
      description_(args.name.empty() ? config_.architecture : args.name, config_.architecture) {
  end_tokens_ = all_end_tokens(weights_, config_, description_.fields().text);
  description_.fields().max_seq_len = max_seq_len_;
  description_.fields().vocab_size = vocabulary_;
  description_.end_tokens(end_tokens_);
  describe_graph();
  describe_resources();
}

void LlamaModel::describe_graph() {
  using cairn::GraphEdge;
  using cairn::GraphNode;
  description_.input_modality("text");
  const std::uint32_t text = description_.output_modality("text");
  wiring_.text_inputs = description_.signal("text_inputs");
  wiring_.new_token = description_.signal("new_token");
  wiring_.main_label = description_.label("main");
  wiring_.decode_loop = description_.loop("decode_loop");
  llm_ = description_.node("LLM", CAIRN_NODE_AUTOREGRESSIVE | CAIRN_NODE_CHUNKED_PREFILL);

  const GraphEdge emitted = GraphEdge::to_client(wiring_.new_token, text).new_token();
  wiring_.prefill = description_.walk("prefill", GraphNode(llm_, {wiring_.text_inputs}, {emitted.persist()}));
  wiring_.decode = description_.walk(
      "decode",
      cairn::Loop(wiring_.decode_loop, max_seq_len_,
                  GraphNode(llm_, {wiring_.text_inputs}, {emitted, GraphEdge::to_node(wiring_.text_inputs, llm_)})));
  description_.combined_walk("prefill_decode", llm_, {wiring_.prefill, wiring_.decode});
}

void LlamaModel::describe_resources() {
  cairn_kv_config kv{};
  kv.num_layers = config_.layers;
  kv.num_kv_heads = config_.kv_heads;
  kv.num_qo_heads = config_.heads;
  kv.head_dim = config_.head_dim;
  kv.max_seq_len = max_seq_len_;
  kv.leader = CAIRN_NONE;
  kv.window = config_.window;
  wiring_.kv = description_.resource("kv", CAIRN_RESOURCE_KV, {llm_}, kv);

  cairn_attention_config attention{};
  attention.kv_cache = wiring_.kv;
  wiring_.attention = description_.resource("attn", CAIRN_RESOURCE_ATTENTION, {llm_}, attention);

  const RopeConfig& rope = config_.rope;
  cairn_position_config position{};
  position.kv_cache = wiring_.kv;
  position.interleave = rope.interleaved ? 1 : 0;
  position.head_dim = config_.head_dim;
  position.rotary_dim = rope.rotary_dim;
  position.rope_theta = rope.theta;
  position.rope_scale = rope.factor;
  position.scaling = rope.scaling;
  position.low_freq_factor = rope.low_freq_factor;
  position.high_freq_factor = rope.high_freq_factor;
  position.old_context_len = rope.scaling == CAIRN_ROPE_SCALING_LLAMA3 ? rope.original_max_position : 0;
  position.original_max_position = rope.original_max_position;
  position.attention_factor = rope.attention_factor;
  position.beta_fast = rope.beta_fast;
  position.beta_slow = rope.beta_slow;
  position.mscale = rope.mscale;
  position.mscale_all_dim = rope.mscale_all_dim;
  position.short_factor = rope.short_factor.empty() ? nullptr : rope.short_factor.data();
  position.long_factor = rope.long_factor.empty() ? nullptr : rope.long_factor.data();
  position.freq_factors = rope_factors_.empty() ? nullptr : rope_factors_.data();
  position.max_position = config_.context;
  wiring_.position = description_.resource("rope", CAIRN_RESOURCE_POSITION, {llm_}, position);

  cairn_sampler_config sampler{};
  sampler.vocab_size = vocabulary_;
  sampler.enable_min_p = 1;
  wiring_.sampler = description_.resource("sampler", CAIRN_RESOURCE_SAMPLER, {llm_}, sampler);
}

cairn::NodeHandle LlamaModel::get_submodule(std::uint32_t node) {
  if (node != llm_) throw cairn::invalid_argument("the model has no node " + std::to_string(node));
  return cairn::make_node<LlamaNode>(config_, wiring_, vocabulary_, end_tokens_, load_weights(weights_, config_));
}

cairn::ForwardPassArgs LlamaModel::get_initial_forward_pass_args(const cairn::InitialArgs& args) {
  const auto prompt = args.input_signals.find(wiring_.text_inputs);
  if (prompt == args.input_signals.end()) throw cairn::invalid_argument("the prompt has no text");
  cairn::ForwardPassArgs next;
  next.full_metadata = cairn::CurrentForwardConductorMetadata(wiring_.prefill, true);
  next.full_metadata.input_modalities.assign(args.input_modalities.begin(), args.input_modalities.end());
  next.full_metadata.output_modalities.assign(args.output_modalities.begin(), args.output_modalities.end());
  next.inputs.push_back({wiring_.text_inputs, llm_, prompt->second});
  return next;
}

// After prefill its token starts the decode loop; after the loop the request is done.
cairn::ForwardPassArgs LlamaModel::get_partition_forward_pass_args(const cairn::TransitionArgs& args) {
  const auto token = args.persist_signals.find(wiring_.new_token);
  if (args.metadata.graph_walk != wiring_.prefill || token == args.persist_signals.end()) {
    return cairn::ForwardPassArgs::done(args.metadata);
  }
  cairn::ForwardPassArgs next;
  next.full_metadata = args.metadata;
  next.full_metadata.graph_walk = wiring_.decode;
  next.full_metadata.is_prefill = false;
  next.inputs.push_back({wiring_.text_inputs, llm_, token->second});
  next.unpersist_tensors.push_back(wiring_.new_token);
  return next;
}

}  // namespace llama
