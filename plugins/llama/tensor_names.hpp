// What the tensors of a Llama-type model are called in a GGUF file and in a Hugging Face checkpoint.
#pragma once

#include <cstdint>
#include <string>

namespace llama {

struct LayerNames {
  std::string attn_norm, q, k, v, q_bias, k_bias, v_bias, q_norm, k_norm, o, o_bias, ffn_norm, gate, up, down;
};

struct TensorNames {
  std::string embedding, output_norm, head;
  std::string rope_factors;  // GGUF only: a divisor per rotary frequency

  bool gguf = false;
  std::string prefix;  // Hugging Face only: "model." or nothing

  LayerNames layer(std::int64_t index) const;
};

TensorNames gguf_names();
// `prefix` is what stands before "embed_tokens.weight".
TensorNames hugging_face_names(const std::string& prefix);

}  // namespace llama
