#include "tensor_names.hpp"

namespace llama {

TensorNames gguf_names() {
  TensorNames names;
  names.gguf = true;
  names.embedding = "token_embd.weight";
  names.output_norm = "output_norm.weight";
  names.head = "output.weight";
  names.rope_factors = "rope_freqs.weight";
  return names;
}

TensorNames hugging_face_names(const std::string& prefix) {
  TensorNames names;
  names.prefix = prefix;
  names.embedding = prefix + "embed_tokens.weight";
  names.output_norm = prefix + "norm.weight";
  names.head = "lm_head.weight";
  return names;
}

LayerNames TensorNames::layer(std::int64_t index) const {
  LayerNames names;
  if (gguf) {
    const std::string at = "blk." + std::to_string(index) + ".";
    names.attn_norm = at + "attn_norm.weight";
    names.q = at + "attn_q.weight";
    names.k = at + "attn_k.weight";
    names.v = at + "attn_v.weight";
    names.q_bias = at + "attn_q.bias";
    names.k_bias = at + "attn_k.bias";
    names.v_bias = at + "attn_v.bias";
    names.q_norm = at + "attn_q_norm.weight";
    names.k_norm = at + "attn_k_norm.weight";
    names.o = at + "attn_output.weight";
    names.o_bias = at + "attn_output.bias";
    names.ffn_norm = at + "ffn_norm.weight";
    names.gate = at + "ffn_gate.weight";
    names.up = at + "ffn_up.weight";
    names.down = at + "ffn_down.weight";
    return names;
  }
  const std::string at = prefix + "layers." + std::to_string(index) + ".";
  names.attn_norm = at + "input_layernorm.weight";
  names.q = at + "self_attn.q_proj.weight";
  names.k = at + "self_attn.k_proj.weight";
  names.v = at + "self_attn.v_proj.weight";
  names.q_bias = at + "self_attn.q_proj.bias";
  names.k_bias = at + "self_attn.k_proj.bias";
  names.v_bias = at + "self_attn.v_proj.bias";
  names.q_norm = at + "self_attn.q_norm.weight";
  names.k_norm = at + "self_attn.k_norm.weight";
  names.o = at + "self_attn.o_proj.weight";
  names.o_bias = at + "self_attn.o_proj.bias";
  names.ffn_norm = at + "post_attention_layernorm.weight";
  names.gate = at + "mlp.gate_proj.weight";
  names.up = at + "mlp.up_proj.weight";
  names.down = at + "mlp.down_proj.weight";
  return names;
}

}  // namespace llama
