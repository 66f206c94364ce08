// The weights of a Llama-type model, checked against its hyperparameters and prepacked by the host.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/tensor.hpp"
#include "config.hpp"

namespace llama {

struct MatrixRelease {
  void operator()(cairn_matrix* matrix) const { cairn::services().weights->matrix_release(matrix); }
};
using Matrix = std::unique_ptr<cairn_matrix, MatrixRelease>;

struct Layer {
  cairn::Tensor attn_norm;  // [hidden]
  Matrix qkv;               // [q + 2 kv, hidden]
  std::optional<cairn::Tensor> qkv_bias;
  std::optional<cairn::Tensor> q_norm;  // [head_dim], per head
  std::optional<cairn::Tensor> k_norm;
  Matrix o;  // [hidden, q]
  std::optional<cairn::Tensor> o_bias;
  cairn::Tensor ffn_norm;  // [hidden]
  Matrix gate_up;          // [2 ffn, hidden], gate first
  Matrix down;             // [hidden, ffn]
};

struct Weights {
  Matrix embedding;  // [vocab, hidden]
  Matrix own_head;   // null when the head is the embedding
  cairn::Tensor output_norm;
  std::vector<Layer> layers;
  const cairn_matrix* head() const { return own_head ? own_head.get() : embedding.get(); }
};

// Rows of the embedding, and GGUF's rotary divisors when the file has some: what the model must know before it loads.
std::int64_t vocabulary_size(const cairn_weights* weights, const Config& config);
std::vector<float> rope_factors(const cairn_weights* weights, const Config& config);

// Loads and prepacks everything and reports progress. Throws cairn::Error: NOT_FOUND or DATA_LOSS naming a missing or
// misshapen tensor, UNSUPPORTED naming a tensor this model has no use for, CANCELLED when the host says stop.
Weights load_weights(const cairn_weights* weights, const Config& config);

}  // namespace llama
