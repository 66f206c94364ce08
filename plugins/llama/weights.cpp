#include "weights.hpp"

#include <algorithm>
#include <set>

#include "tensor_names.hpp"

namespace llama {
namespace {

std::string shape_text(const cairn_tensor_view& view) {
  std::string text = "[";
  for (std::int32_t i = 0; i < view.ndim; ++i) text += (i == 0 ? "" : ", ") + std::to_string(view.shape[i]);
  return text + "]";
}

// Reads tensors of one checkpoint and remembers which were used.
class Loader {
 public:
  Loader(const cairn_weights* weights, const Config& config)
      : weights_(weights), service_(cairn::services().weights), config_(config) {
    names = config.gguf ? gguf_names() : hugging_face_names(has("model.embed_tokens.weight") ? "model." : "");
  }

  TensorNames names;

  bool has(const std::string& name) const {
    cairn_tensor_view view{};
    return service_->tensor(weights_, cairn::str(name), &view) == CAIRN_STATUS_OK;
  }

  // The view of a tensor that must be there and have the given shape.
  cairn_tensor_view view(const std::string& name, std::initializer_list<std::int64_t> shape) {
    cairn_tensor_view found{};
    cairn::check(service_->tensor(weights_, cairn::str(name), &found));
    if (!std::equal(shape.begin(), shape.end(), found.shape, found.shape + found.ndim)) {
      std::string expected = "[";
      for (std::int64_t extent : shape) expected += (expected.size() == 1 ? "" : ", ") + std::to_string(extent);
      throw cairn::data_loss("the tensor '" + name + "' has the shape " + shape_text(found) +
                             ", but the model's metadata asks for " + expected + "]");
    }
    used_.insert(name);
    return found;
  }

  cairn::Tensor vector(const std::string& name, std::int64_t size) {
    view(name, {size});
    cairn_tensor* owned = nullptr;
    cairn::check(service_->tensor_f32(weights_, cairn::str(name), &owned));
    return cairn::Tensor::adopt(owned);
  }

  std::optional<cairn::Tensor> optional_vector(const std::string& name, std::int64_t size) {
    if (!has(name)) return std::nullopt;
    return vector(name, size);
  }

  struct Part {
    const std::string& name;
    std::int64_t rows;
  };
  // One prepacked matrix from tensors stacked along rows.
  Matrix matrix(std::initializer_list<Part> parts, std::int64_t columns, std::uint32_t layout = CAIRN_PREPACK_PLAIN) {
    std::vector<cairn_str> stacked;
    for (const Part& part : parts) {
      view(part.name, {part.rows, columns});
      stacked.push_back(cairn::str(part.name));
    }
    cairn_matrix* owned = nullptr;
    cairn::check(service_->prepack(weights_, stacked.data(), stacked.size(), layout, &owned));
    return Matrix(owned);
  }

  // q, k and v have biases all together or not at all.
  std::optional<cairn::Tensor> stacked_bias(std::initializer_list<Part> parts) {
    const auto present = std::count_if(parts.begin(), parts.end(), [this](const Part& part) { return has(part.name); });
    if (present == 0) return std::nullopt;
    std::int64_t total = 0;
    for (const Part& part : parts) total += part.rows;
    cairn::Tensor bias = cairn::Tensor::create(cairn::kFloat32, {total});
    float* to = bias.values<float>().data();
    for (const Part& part : parts) {
      const cairn::Tensor values = vector(part.name, part.rows);
      to = std::ranges::copy(values.values<const float>(), to).out;
    }
    return bias;
  }

  void use(const std::string& name) { used_.insert(name); }

  // A tensor nobody asked for means that the file is a model of another kind than its metadata says.
  void refuse_unused() const {
    const std::uint64_t count = service_->tensor_count(weights_);
    for (std::uint64_t i = 0; i < count; ++i) {
      cairn_str raw{};
      cairn::check(service_->tensor_name(weights_, i, &raw));
      const std::string name(cairn::text(raw));
      if (used_.contains(name) || name.ends_with("rotary_emb.inv_freq")) continue;
      throw cairn::unsupported("the tensor '" + name + "' has no place in a model of architecture '" +
                               config_.architecture + "' as this plugin knows it");
    }
  }

 private:
  const cairn_weights* weights_;
  const cairn_weights_service* service_;
  const Config& config_;
  std::set<std::string> used_;
};

void report_progress(std::int64_t done, std::int64_t total) {
  const cairn_progress_service* progress = cairn::services().progress;
  if (!CAIRN_HAS(progress, cairn_progress_service, report)) return;
  const double fraction = static_cast<double>(done) / static_cast<double>(total);
  const cairn_status status = progress->report(fraction, cairn::str("loading weights"));
  if (status == CAIRN_STATUS_CANCELLED) throw cairn::Error(status, "loading was cancelled");
}

Layer load_layer(Loader& loader, const Config& config, std::int64_t index) {
  const LayerNames names = loader.names.layer(index);
  Layer layer;
  layer.attn_norm = loader.vector(names.attn_norm, config.hidden);
  layer.qkv = loader.matrix({{names.q, config.q_size()}, {names.k, config.kv_size()}, {names.v, config.kv_size()}},
                            config.hidden);
  layer.qkv_bias = loader.stacked_bias(
      {{names.q_bias, config.q_size()}, {names.k_bias, config.kv_size()}, {names.v_bias, config.kv_size()}});
  const bool q_and_k_norm = config.architecture == "qwen3" || config.architecture == "Qwen3ForCausalLM";
  if (q_and_k_norm) {
    layer.q_norm = loader.vector(names.q_norm, config.head_dim);
    layer.k_norm = loader.vector(names.k_norm, config.head_dim);
  }
  layer.o = loader.matrix({{names.o, config.hidden}}, config.q_size());
  layer.o_bias = loader.optional_vector(names.o_bias, config.hidden);
  layer.ffn_norm = loader.vector(names.ffn_norm, config.hidden);
  layer.gate_up = loader.matrix({{names.gate, config.ffn}, {names.up, config.ffn}}, config.hidden, CAIRN_PREPACK_GATED);
  layer.down = loader.matrix({{names.down, config.hidden}}, config.ffn);
  return layer;
}

}  // namespace

std::int64_t vocabulary_size(const cairn_weights* weights, const Config& config) {
  const Loader loader(weights, config);
  const std::string& name = loader.names.embedding;
  cairn_tensor_view view{};
  cairn::check(cairn::services().weights->tensor(weights, cairn::str(name), &view));
  if (view.ndim != 2 || view.shape[0] < 1 || view.shape[0] > INT32_MAX || view.shape[1] != config.hidden) {
    throw cairn::data_loss("the tensor '" + name + "' has the shape " + shape_text(view) + ", but [vocabulary, " +
                           std::to_string(config.hidden) + "] is needed");
  }
  return view.shape[0];
}

std::vector<float> rope_factors(const cairn_weights* weights, const Config& config) {
  Loader loader(weights, config);
  if (!config.gguf || !loader.has(loader.names.rope_factors)) return {};
  const cairn::Tensor factors = loader.vector(loader.names.rope_factors, config.rope.rotary_dim / 2);
  const auto values = factors.values<const float>();
  if (std::ranges::any_of(values, [](float factor) { return !(factor > 0.0F); })) {
    throw cairn::data_loss("the tensor '" + loader.names.rope_factors + "' holds a factor that is not above 0");
  }
  return {values.begin(), values.end()};
}

Weights load_weights(const cairn_weights* weights, const Config& config) {
  Loader loader(weights, config);
  const std::int64_t vocabulary = vocabulary_size(weights, config);
  const std::int64_t parts = config.layers + 2;
  Weights loaded;
  report_progress(0, parts);
  loaded.embedding = loader.matrix({{loader.names.embedding, vocabulary}}, config.hidden);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    report_progress(i + 1, parts);
    loaded.layers.push_back(load_layer(loader, config, i));
  }
  report_progress(config.layers + 1, parts);
  loaded.output_norm = loader.vector(loader.names.output_norm, config.hidden);
  if (loader.has(loader.names.head) || !config.tied_by_config) {
    loaded.own_head = loader.matrix({{loader.names.head, vocabulary}}, config.hidden);
  }
  if (config.gguf) loader.use(loader.names.rope_factors);
  loader.refuse_unused();
  report_progress(parts, parts);
  return loaded;
}

}  // namespace llama
