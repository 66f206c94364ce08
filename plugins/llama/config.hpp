// The hyperparameters of a Llama-type decoder, read from GGUF metadata or from a Hugging Face config.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metadata.hpp"

namespace llama {

struct RopeConfig {
  bool interleaved = false;  // GGUF's llama: q and k were permuted for pairs (2i, 2i + 1)
  std::int64_t rotary_dim = 0;
  double theta = 10000.0;
  std::uint32_t scaling = CAIRN_ROPE_SCALING_NONE;
  double factor = 1.0;
  double low_freq_factor = 0.0;   // llama3
  double high_freq_factor = 0.0;  // llama3
  std::int64_t original_max_position = 0;
  double attention_factor = 0.0;  // 0: as published
  double beta_fast = 0.0;         // 0: as published
  double beta_slow = 0.0;
  double mscale = 0.0;
  double mscale_all_dim = 0.0;
  std::vector<float> short_factor;  // longrope
  std::vector<float> long_factor;
};

struct Config {
  std::string architecture;
  bool gguf = false;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t context = 0;
  std::int64_t window = 0;     // 0: every position is seen
  bool tied_by_config = true;  // the head may be the embedding when the file has no head of its own
  double norm_eps = 1e-6;
  std::uint32_t activation = CAIRN_ACTIVATION_SILU;
  std::vector<std::int32_t> end_tokens;
  RopeConfig rope;

  std::int64_t q_size() const { return heads * head_dim; }
  std::int64_t kv_size() const { return kv_heads * head_dim; }
};

// Throws cairn::Error: UNSUPPORTED for an architecture or variant of another kind, DATA_LOSS for damaged metadata.
Config read_config(const Metadata& metadata);

}  // namespace llama
