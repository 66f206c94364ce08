#include "config.hpp"

#include <array>

#include "cairn/error.hpp"

namespace llama {
namespace {

// Bounds that keep every product of two of these far inside 64 bits; real models stay well below.
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxContext = std::int64_t{1} << 30;

void check_heads(const Config& config) {
  if (config.heads % config.kv_heads != 0) {
    throw cairn::data_loss("the model has " + std::to_string(config.heads) + " heads, no multiple of its " +
                           std::to_string(config.kv_heads) + " key/value heads");
  }
  const std::int64_t rotary = config.rope.rotary_dim;
  if (rotary <= 0 || rotary > config.head_dim || rotary % 2 != 0) {
    throw cairn::data_loss("the model rotates " + std::to_string(rotary) + " of " + std::to_string(config.head_dim) +
                           " dimensions of a head; an even number of at most all of them is needed");
  }
}

std::int64_t derived_head_dim(const Config& config) {
  if (config.hidden % config.heads != 0) {
    throw cairn::data_loss("the hidden size " + std::to_string(config.hidden) + " is no multiple of the " +
                           std::to_string(config.heads) + " heads, and the metadata gives no head size");
  }
  return config.hidden / config.heads;
}

void read_gguf_rope(const Metadata& metadata, const std::string& prefix, Config& config) {
  RopeConfig& rope = config.rope;
  rope.interleaved = config.architecture == "llama";
  rope.rotary_dim = metadata.integer(prefix + "rope.dimension_count").value_or(config.head_dim);
  rope.theta = metadata.real(prefix + "rope.freq_base").value_or(10000.0);
  rope.original_max_position = metadata.integer(prefix + "rope.scaling.original_context_length").value_or(0);
  rope.attention_factor = metadata.real(prefix + "rope.scaling.attn_factor").value_or(0.0);
  const std::string type = metadata.string(prefix + "rope.scaling.type").value_or("");
  const auto factor = metadata.real(prefix + "rope.scaling.factor");
  const auto old_linear = metadata.real(prefix + "rope.scale_linear");
  if (type == "linear" || (type.empty() && (factor || old_linear))) {
    rope.factor = factor ? *factor : old_linear.value_or(1.0);
    if (rope.factor != 1.0) rope.scaling = CAIRN_ROPE_SCALING_LINEAR;
  } else if (type == "yarn") {
    rope.scaling = CAIRN_ROPE_SCALING_YARN;
    rope.factor = factor.value_or(1.0);
    rope.beta_fast = metadata.real(prefix + "rope.scaling.yarn_beta_fast").value_or(0.0);
    rope.beta_slow = metadata.real(prefix + "rope.scaling.yarn_beta_slow").value_or(0.0);
  } else if (!type.empty() && type != "none") {
    throw cairn::unsupported("rope scaling '" + type + "' of a GGUF file of architecture '" + config.architecture +
                             "' is not supported; linear and yarn are");
  }
}

Config read_gguf(const Metadata& metadata) {
  Config config;
  config.gguf = true;
  config.architecture = metadata.architecture();
  const bool known = config.architecture == "llama" || config.architecture == "qwen2" || config.architecture == "qwen3";
  if (!known) {
    throw cairn::unsupported("the GGUF architecture '" + config.architecture +
                             "' is not served by this plugin; llama, qwen2 and qwen3 are");
  }
  const std::string prefix = config.architecture + ".";
  if (metadata.integer(prefix + "expert_count").value_or(0) > 0) {
    throw cairn::unsupported("the model is a mixture of experts, which this plugin does not serve");
  }
  config.layers = metadata.required_integer(prefix + "block_count", 1, kMaxLayers);
  config.hidden = metadata.required_integer(prefix + "embedding_length", 1, kMaxExtent);
  config.ffn = metadata.required_integer(prefix + "feed_forward_length", 1, kMaxExtent);
  config.heads = metadata.required_integer(prefix + "attention.head_count", 1, 65536);
  config.kv_heads = metadata.integer(prefix + "attention.head_count_kv").value_or(config.heads);
  if (config.kv_heads < 1 || config.kv_heads > config.heads) {
    throw cairn::data_loss("the model has " + std::to_string(config.kv_heads) + " key/value heads of " +
                           std::to_string(config.heads) + " heads");
  }
  config.context = metadata.required_integer(prefix + "context_length", 1, kMaxContext);
  const auto key_length = metadata.integer(prefix + "attention.key_length");
  config.head_dim =
      key_length ? metadata.required_integer(prefix + "attention.key_length", 1, 65536) : derived_head_dim(config);
  if (metadata.integer(prefix + "attention.value_length").value_or(config.head_dim) != config.head_dim) {
    throw cairn::unsupported("the model's values have another size than its keys");
  }
  config.norm_eps = metadata.real(prefix + "attention.layer_norm_rms_epsilon").value_or(1e-6);
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    for (std::int32_t id : metadata.ids(key)) config.end_tokens.push_back(id);
  }
  read_gguf_rope(metadata, prefix, config);
  return config;
}

void read_hf_rope(const Metadata& metadata, Config& config) {
  RopeConfig& rope = config.rope;
  // transformers 5 moved rope_scaling and rope_theta into rope_parameters.
  const bool parameters = metadata.string("rope_parameters.rope_type").has_value();
  const std::string at = parameters ? "rope_parameters." : "rope_scaling.";
  const auto theta = metadata.real("rope_theta");
  rope.theta = theta ? *theta : metadata.real("rope_parameters.rope_theta").value_or(10000.0);
  auto partial = metadata.real("partial_rotary_factor");
  if (!partial) partial = metadata.real("rope_parameters.partial_rotary_factor");
  rope.rotary_dim =
      partial ? static_cast<std::int64_t>(static_cast<double>(config.head_dim) * *partial) : config.head_dim;
  auto type = metadata.string(at + "rope_type");
  if (!type) type = metadata.string(at + "type");
  if (!type || *type == "default") return;

  rope.factor = metadata.real(at + "factor").value_or(1.0);
  auto original = metadata.integer(at + "original_max_position_embeddings");
  if (!original) original = metadata.integer("original_max_position_embeddings");
  rope.original_max_position = original.value_or(config.context);
  rope.attention_factor = metadata.real(at + "attention_factor").value_or(0.0);
  if (*type == "linear") {
    rope.scaling = CAIRN_ROPE_SCALING_LINEAR;
  } else if (*type == "dynamic") {
    rope.scaling = CAIRN_ROPE_SCALING_DYNAMIC;
  } else if (*type == "yarn") {
    rope.scaling = CAIRN_ROPE_SCALING_YARN;
    rope.beta_fast = metadata.real(at + "beta_fast").value_or(0.0);
    rope.beta_slow = metadata.real(at + "beta_slow").value_or(0.0);
    rope.mscale = metadata.real(at + "mscale").value_or(0.0);
    rope.mscale_all_dim = metadata.real(at + "mscale_all_dim").value_or(0.0);
  } else if (*type == "llama3") {
    rope.scaling = CAIRN_ROPE_SCALING_LLAMA3;
    rope.low_freq_factor = metadata.real(at + "low_freq_factor").value_or(1.0);
    rope.high_freq_factor = metadata.real(at + "high_freq_factor").value_or(4.0);
  } else if (*type == "longrope" || *type == "su") {
    rope.scaling = CAIRN_ROPE_SCALING_LONGROPE;
    rope.short_factor = metadata.reals(at + "short_factor").value_or(std::vector<float>{});
    rope.long_factor = metadata.reals(at + "long_factor").value_or(std::vector<float>{});
    const auto needed = static_cast<std::size_t>(rope.rotary_dim / 2);
    if (rope.short_factor.size() != needed || rope.long_factor.size() != needed) {
      throw cairn::data_loss("longrope needs short_factor and long_factor of " + std::to_string(needed) +
                             " numbers each; config.json has " + std::to_string(rope.short_factor.size()) + " and " +
                             std::to_string(rope.long_factor.size()));
    }
  } else {
    throw cairn::unsupported("rope scaling '" + *type +
                             "' is not known; default, linear, dynamic, yarn, llama3 and longrope are");
  }
}

std::uint32_t read_activation(const Metadata& metadata) {
  const std::string name = metadata.string("hidden_act").value_or("silu");
  if (name == "silu" || name == "swish") return CAIRN_ACTIVATION_SILU;
  if (name == "gelu") return CAIRN_ACTIVATION_GELU;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return CAIRN_ACTIVATION_GELU_TANH;
  throw cairn::unsupported("hidden_act '" + name + "' is not supported; silu and gelu are");
}

// A sliding window counts only where the model switches it on, and only for all layers alike.
std::int64_t read_window(const Metadata& metadata, const Config& config) {
  const std::int64_t window = metadata.integer("sliding_window").value_or(0);
  if (window <= 0 || window >= config.context) return 0;
  if (config.architecture.starts_with("Mistral")) return window;
  if (!metadata.boolean("use_sliding_window").value_or(false)) return 0;
  if (metadata.integer("max_window_layers").value_or(config.layers) >= config.layers) return 0;
  throw cairn::unsupported("the model uses a sliding window in some of its layers only, which is not supported");
}

Config read_hf(const Metadata& metadata) {
  Config config;
  config.architecture = metadata.string("architectures.0").value_or(metadata.architecture());
  constexpr std::array known = {"LlamaForCausalLM",
                                "MistralForCausalLM",
                                "Qwen2ForCausalLM",
                                "Qwen3ForCausalLM",
                                "SmolLMForCausalLM",
                                "llama",
                                "mistral",
                                "qwen2",
                                "qwen3"};
  bool served = false;
  for (const char* name : known) served = served || config.architecture == name;
  if (!served) {
    throw cairn::unsupported("the architecture '" + config.architecture +
                             "' is not served by this plugin; Llama, Mistral, Qwen2 and Qwen3 dense models are");
  }
  config.layers = metadata.required_integer("num_hidden_layers", 1, kMaxLayers);
  config.hidden = metadata.required_integer("hidden_size", 1, kMaxExtent);
  config.ffn = metadata.required_integer("intermediate_size", 1, kMaxExtent);
  config.heads = metadata.required_integer("num_attention_heads", 1, 65536);
  config.kv_heads = metadata.integer("num_key_value_heads").value_or(config.heads);
  if (config.kv_heads < 1 || config.kv_heads > config.heads) {
    throw cairn::data_loss("config.json has " + std::to_string(config.kv_heads) + " key/value heads of " +
                           std::to_string(config.heads) + " heads");
  }
  config.head_dim =
      metadata.integer("head_dim") ? metadata.required_integer("head_dim", 1, 65536) : derived_head_dim(config);
  config.context = metadata.required_integer("max_position_embeddings", 1, kMaxContext);
  config.norm_eps = metadata.real("rms_norm_eps").value_or(1e-6);
  config.tied_by_config = metadata.boolean("tie_word_embeddings").value_or(true);
  config.activation = read_activation(metadata);
  config.end_tokens = metadata.ids("eos_token_id");
  config.window = read_window(metadata, config);
  read_hf_rope(metadata, config);
  return config;
}

}  // namespace

Config read_config(const Metadata& metadata) {
  Config config = metadata.is_gguf() ? read_gguf(metadata) : read_hf(metadata);
  check_heads(config);
  return config;
}

}  // namespace llama
