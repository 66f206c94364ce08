// "cairn.weights", and the ops on its matrices, over a small Hugging Face folder written here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "allocation_count.hpp"
#include "core/plugin/arena.hpp"
#include "core/plugin/open_weights.hpp"
#include "host_table.hpp"

namespace cairn {
namespace {

// Small integers over 8: exact in bfloat16 too.
float weight(int tensor, std::size_t i) {
  return static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(tensor) * 5) % 31) - 15) / 8.0F;
}

std::string f32_bytes(int tensor, std::size_t count) {
  std::string bytes(count * 4, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const float value = weight(tensor, i);
    std::memcpy(bytes.data() + i * 4, &value, 4);
  }
  return bytes;
}
std::string bf16_bytes(int tensor, std::size_t count) {
  std::string bytes(count * 2, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const auto high = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weight(tensor, i)) >> 16);
    std::memcpy(bytes.data() + i * 2, &high, 2);
  }
  return bytes;
}

constexpr std::int64_t kColumns = 32;

class Weights : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("cairn-weights-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    struct Entry {
      const char* name;
      const char* dtype;
      std::vector<std::int64_t> shape;
      std::string bytes;
    };
    const std::vector<Entry> entries = {{"a", "F32", {4, kColumns}, f32_bytes(1, 4 * kColumns)},
                                        {"b", "BF16", {6, kColumns}, bf16_bytes(2, 6 * kColumns)},
                                        {"norm", "F32", {kColumns}, f32_bytes(3, kColumns)},
                                        {"narrow", "F32", {4, 16}, f32_bytes(4, 64)},
                                        {"ids", "I32", {2}, std::string(8, '\1')}};
    std::string header = "{";
    std::string data;
    for (const Entry& entry : entries) {
      std::string shape;
      for (const auto extent : entry.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
      header += (header.size() > 1 ? "," : "") + ("\"" + std::string(entry.name)) + "\":{\"dtype\":\"" + entry.dtype +
                "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
                std::to_string(data.size() + entry.bytes.size()) + "]}";
      data += entry.bytes;
    }
    header += "}";
    const std::uint64_t size = header.size();
    std::ofstream(folder_ / "model.safetensors", std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&size), 8) << header << data;
    std::ofstream(folder_ / "config.json") << R"({"model_type":"llama","architectures":["LlamaForCausalLM"],
      "hidden_size":32,"rope_scaling":{"factor":8.5,"type":"linear"},"tie_word_embeddings":true,"a.b":{"c":1}})";
    std::ofstream(folder_ / "tokenizer_config.json")
        << R"({"chat_template":"{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if tools %}T{{ tools|length }}{% endif %}{% if add_generation_prompt %}[assistant]{% endif %}{{ style }}","bos_token":"<s>","eos_token":"</s>"})";
    std::ofstream(folder_ / "tokenizer.json") << R"({"version":"1.0","added_tokens":[
      {"id":0,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
      {"id":1,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
      "normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
      "post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
      "model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,
      "fuse_unk":false,"byte_fallback":false,"vocab":{"<s>":0,"</s>":1,"h":2,"i":3,"hi":4},"merges":["h i"]}})";
    weights_ = OpenWeights::open(folder_);
  }
  void TearDown() override {
    weights_.reset();
    std::filesystem::remove_all(folder_);
  }

  cairn_matrix* prepack(std::vector<std::string_view> names, std::uint32_t layout) {
    std::vector<cairn_str> list;
    for (const auto name : names) list.push_back(to_abi_str(name));
    cairn_matrix* matrix = nullptr;
    status_ = service().prepack(weights_->handle(), list.data(), list.size(), layout, &matrix);
    return matrix;
  }
  static const cairn_weights_service& service() { return host_table<cairn_weights_service>("cairn.weights"); }

  std::filesystem::path folder_;
  std::shared_ptr<OpenWeights> weights_;
  cairn_status status_ = CAIRN_STATUS_OK;
};

TEST_F(Weights, MetadataIsReachedByDottedPath) {
  const auto& service = Weights::service();
  const auto get = [&](const char* key) {
    cairn_value value{};
    EXPECT_EQ(service.metadata(weights_->handle(), to_abi_str(key), &value), CAIRN_STATUS_OK) << key;
    return value;
  };
  EXPECT_EQ(service.format(weights_->handle()), static_cast<std::uint32_t>(CAIRN_WEIGHTS_SAFETENSORS));
  EXPECT_EQ(from_abi_str(service.architecture(weights_->handle())), "llama");
  EXPECT_EQ(get("hidden_size").as.integer, 32);
  EXPECT_EQ(get("rope_scaling.factor").as.real, 8.5);
  EXPECT_EQ(from_abi_str(get("rope_scaling.type").as.string), "linear");
  EXPECT_EQ(from_abi_str(get("architectures.0").as.string), "LlamaForCausalLM");
  EXPECT_EQ(get("tie_word_embeddings").as.integer, 1);
  EXPECT_EQ(get("a.b").kind, static_cast<std::uint32_t>(CAIRN_VALUE_MAP));
  EXPECT_EQ(get("rope_scaling").as.map.count, 2U);
  EXPECT_EQ(from_abi_str(get("rope_scaling.type").as.string).data(),
            from_abi_str(get("rope_scaling.type").as.string).data());
  for (const char* key :
       {"absent", "rope_scaling.absent", "architectures.1", "architectures.x", "hidden_size.x", "", "."}) {
    cairn_value value{};
    EXPECT_EQ(service.metadata(weights_->handle(), to_abi_str(key), &value), CAIRN_STATUS_NOT_FOUND) << key;
  }
  cairn_value value{};
  EXPECT_EQ(service.metadata(nullptr, to_abi_str("x"), &value), CAIRN_STATUS_INVALID_ARGUMENT);
}

TEST_F(Weights, TensorsAreListedMappedAndConverted) {
  const auto& service = Weights::service();
  ASSERT_EQ(service.tensor_count(weights_->handle()), 5U);
  cairn_str name{};
  ASSERT_EQ(service.tensor_name(weights_->handle(), 1, &name), CAIRN_STATUS_OK);
  EXPECT_EQ(from_abi_str(name), "b");
  EXPECT_EQ(service.tensor_name(weights_->handle(), 5, &name), CAIRN_STATUS_OUT_OF_RANGE);

  cairn_tensor_view view{};
  ASSERT_EQ(service.tensor(weights_->handle(), to_abi_str("b"), &view), CAIRN_STATUS_OK);
  EXPECT_EQ(view.dtype.code, CAIRN_DTYPE_BFLOAT);
  EXPECT_EQ(view.ndim, 2);
  EXPECT_EQ(view.shape[0], 6);
  EXPECT_EQ(view.flags, static_cast<std::uint64_t>(CAIRN_TENSOR_READ_ONLY));
  EXPECT_EQ(service.tensor(weights_->handle(), to_abi_str("zz"), &view), CAIRN_STATUS_NOT_FOUND);
  EXPECT_NE(last_status_message().find("no tensor 'zz'"), std::string_view::npos);

  const auto& tensors = host_table<cairn_tensor_service>("cairn.tensor");
  cairn_tensor* converted = nullptr;
  ASSERT_EQ(service.tensor_f32(weights_->handle(), to_abi_str("b"), &converted), CAIRN_STATUS_OK);
  tensors.view(converted, &view);
  for (std::size_t i = 0; i < 6 * kColumns; ++i) ASSERT_EQ(static_cast<float*>(view.data)[i], weight(2, i)) << i;
  tensors.release(converted);
  ASSERT_EQ(service.tensor_f32(weights_->handle(), to_abi_str("ids"), &converted), CAIRN_STATUS_OK);
  tensors.view(converted, &view);
  EXPECT_EQ(static_cast<float*>(view.data)[1], 16843009.0F);  // 0x01010101
  tensors.release(converted);
}

// Rows of tensors 1 and 2 stacked.
double stacked(std::int64_t row, std::int64_t column) {
  const bool first = row < 4;
  return static_cast<double>(
      weight(first ? 1 : 2, static_cast<std::size_t>((first ? row : row - 4) * kColumns + column)));
}

TEST_F(Weights, AStackedMatrixMultiplies) {
  const std::int64_t before = live_matrices();
  cairn_matrix* matrix = prepack({"a", "b"}, CAIRN_PREPACK_PLAIN);
  ASSERT_EQ(status_, CAIRN_STATUS_OK) << last_status_message();
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  ASSERT_EQ(service().matrix_shape(matrix, &rows, &columns), CAIRN_STATUS_OK);
  EXPECT_EQ(rows, 10);
  EXPECT_EQ(columns, kColumns);

  // x has a token stride of 40 floats, out one of 16.
  std::vector<float> x(3 * 40);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 6.0F;
  std::vector<float> out(3 * 16, 99.0F);
  const std::vector<float> bias{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::int64_t x_shape[] = {3, 4, 8};
  const std::int64_t x_strides[] = {40, 8, 1};
  const std::int64_t out_shape[] = {3, 10};
  const std::int64_t out_strides[] = {16, 1};
  const std::int64_t bias_shape[] = {10};
  const cairn_dtype f32{CAIRN_DTYPE_FLOAT, 32, 1};
  const cairn_tensor_view x_view{x.data(), {CAIRN_DEVICE_CPU, 0}, 3, f32, x_shape, x_strides, 0, 0, nullptr};
  const cairn_tensor_view out_view{out.data(), {CAIRN_DEVICE_CPU, 0}, 2, f32, out_shape, out_strides, 0, 0, nullptr};
  const cairn_tensor_view bias_view{const_cast<float*>(bias.data()),
                                    {CAIRN_DEVICE_CPU, 0},
                                    1,
                                    f32,
                                    bias_shape,
                                    nullptr,
                                    0,
                                    CAIRN_TENSOR_READ_ONLY,
                                    nullptr};
  const auto& ops = host_table<cairn_ops_service>("cairn.ops");
  const auto expect_times = [&](double factor) {
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t r = 0; r < 10; ++r) {
        double expected = static_cast<double>(bias[static_cast<std::size_t>(r)]);
        for (std::int64_t c = 0; c < kColumns; ++c) {
          expected += stacked(r, c) * static_cast<double>(x[static_cast<std::size_t>(t * 40 + c)]);
        }
        EXPECT_NEAR(static_cast<double>(out[static_cast<std::size_t>(t * 16 + r)]), factor * expected, 1e-3)
            << t << " " << r;
      }
      for (std::size_t pad = 10; pad < 16; ++pad) EXPECT_EQ(out[static_cast<std::size_t>(t) * 16 + pad], 99.0F);
    }
  };
  ASSERT_EQ(ops.linear(matrix, &x_view, &bias_view, 0, &out_view), CAIRN_STATUS_OK) << last_status_message();
  expect_times(1);
  ASSERT_EQ(ops.linear(matrix, &x_view, &bias_view, 1, &out_view), CAIRN_STATUS_OK);
  expect_times(2);

  const std::int64_t allocations = allocations_of_this_thread();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(ops.linear(matrix, &x_view, &bias_view, 0, &out_view), CAIRN_STATUS_OK);
  EXPECT_EQ(allocations_of_this_thread(), allocations);

  // Embedding reads rows of the same matrix.
  std::vector<std::int32_t> ids{9, 0, 4};
  std::vector<float> rows_out(3 * kColumns);
  const std::int64_t ids_shape[] = {3};
  const std::int64_t rows_shape[] = {3, kColumns};
  const cairn_tensor_view ids_view{
      ids.data(), {CAIRN_DEVICE_CPU, 0}, 1, {CAIRN_DTYPE_INT, 32, 1}, ids_shape, nullptr, 0, 0, nullptr};
  const cairn_tensor_view rows_view{rows_out.data(), {CAIRN_DEVICE_CPU, 0}, 2, f32, rows_shape, nullptr, 0, 0, nullptr};
  ASSERT_EQ(ops.embedding(matrix, &ids_view, &rows_view), CAIRN_STATUS_OK) << last_status_message();
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      EXPECT_EQ(static_cast<double>(rows_out[i * kColumns + static_cast<std::size_t>(c)]), stacked(ids[i], c));
    }
  }
  ids[1] = 10;
  EXPECT_EQ(ops.embedding(matrix, &ids_view, &rows_view), CAIRN_STATUS_OUT_OF_RANGE);
  EXPECT_EQ(last_status_message(), "ops.embedding: id 10 at position 1 is outside the 10 rows of the matrix");
  ids[1] = -1;
  EXPECT_EQ(ops.embedding(matrix, &ids_view, &rows_view), CAIRN_STATUS_OUT_OF_RANGE);

  // Misuse.
  EXPECT_EQ(ops.linear(nullptr, &x_view, nullptr, 0, &out_view), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.linear(matrix, &x_view, nullptr, 0, &rows_view), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(last_status_message().find("ops.linear: out [3, 32] "), std::string_view::npos) << last_status_message();
  EXPECT_EQ(ops.linear(matrix, &out_view, nullptr, 0, &out_view), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.linear_gated(matrix, &x_view, CAIRN_ACTIVATION_SILU, &out_view), CAIRN_STATUS_INVALID_ARGUMENT);
  service().matrix_release(matrix);
  service().matrix_release(nullptr);
  EXPECT_EQ(live_matrices(), before);
}

TEST_F(Weights, AGatedMatrixTakesOneTensorOrTwoHalves) {
  const auto& ops = host_table<cairn_ops_service>("cairn.ops");
  std::vector<float> x(2 * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) / 4.0F - 0.5F;
  const std::int64_t x_shape[] = {2, kColumns};
  const std::int64_t out_shape[] = {2, 3};
  const cairn_dtype f32{CAIRN_DTYPE_FLOAT, 32, 1};
  std::vector<float> out(6);
  const cairn_tensor_view x_view{x.data(), {CAIRN_DEVICE_CPU, 0}, 2, f32, x_shape, nullptr, 0, 0, nullptr};
  const cairn_tensor_view out_view{out.data(), {CAIRN_DEVICE_CPU, 0}, 2, f32, out_shape, nullptr, 0, 0, nullptr};

  cairn_matrix* matrix = prepack({"b"}, CAIRN_PREPACK_GATED);  // rows 0..2 gate, 3..5 up
  ASSERT_EQ(status_, CAIRN_STATUS_OK) << last_status_message();
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  service().matrix_shape(matrix, &rows, &columns);
  EXPECT_EQ(rows, 6);
  ASSERT_EQ(ops.linear_gated(matrix, &x_view, CAIRN_ACTIVATION_SILU, &out_view), CAIRN_STATUS_OK)
      << last_status_message();
  for (std::int64_t t = 0; t < 2; ++t) {
    for (std::int64_t r = 0; r < 3; ++r) {
      double gate = 0;
      double up = 0;
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const auto value = static_cast<double>(x[static_cast<std::size_t>(t * kColumns + c)]);
        gate += stacked(4 + r, c) * value;
        up += stacked(7 + r, c) * value;
      }
      EXPECT_NEAR(static_cast<double>(out[static_cast<std::size_t>(t * 3 + r)]), gate / (1 + std::exp(-gate)) * up,
                  1e-3);
    }
  }
  EXPECT_EQ(ops.linear(matrix, &x_view, nullptr, 0, &out_view), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.linear_gated(matrix, &x_view, 9, &out_view), CAIRN_STATUS_UNSUPPORTED);
  service().matrix_release(matrix);

  matrix = prepack({"a", "a"}, CAIRN_PREPACK_GATED);
  EXPECT_EQ(status_, CAIRN_STATUS_OK) << last_status_message();
  service().matrix_release(matrix);
  prepack({"a", "b"}, CAIRN_PREPACK_GATED);
  EXPECT_EQ(status_, CAIRN_STATUS_INVALID_ARGUMENT);
}

TEST_F(Weights, PrepackNamesWhatDoesNotFit) {
  const auto message_of = [&](std::vector<std::string_view> names, std::uint32_t layout, cairn_status expected) {
    EXPECT_EQ(prepack(std::move(names), layout), nullptr);
    EXPECT_EQ(status_, expected);
    return take_status_message();
  };
  EXPECT_NE(message_of({"a", "zz"}, 0, CAIRN_STATUS_NOT_FOUND).find("'zz'"), std::string::npos);
  EXPECT_EQ(message_of({"a", "narrow"}, 0, CAIRN_STATUS_INVALID_ARGUMENT),
            "weights.prepack: the tensor 'narrow' has the shape [4, 16], those before it have 32 columns");
  EXPECT_EQ(message_of({"norm"}, 0, CAIRN_STATUS_INVALID_ARGUMENT),
            "weights.prepack: the tensor 'norm' has the shape [32], a matrix is needed");
  EXPECT_NE(message_of({"a"}, 7, CAIRN_STATUS_UNSUPPORTED).find("layout 7"), std::string::npos);
  EXPECT_NE(message_of({}, 0, CAIRN_STATUS_INVALID_ARGUMENT), "");
}

TEST_F(Weights, TheTokenizerEncodesAndDecodes) {
  const auto& service = host_table<cairn_tokenizer_service>("cairn.tokenizer");
  const cairn_tokenizer* tokenizer = nullptr;
  ASSERT_EQ(service.get(weights_->handle(), &tokenizer), CAIRN_STATUS_OK) << last_status_message();
  EXPECT_EQ(service.vocab_size(tokenizer), 5);
  EXPECT_EQ(service.token_id(tokenizer, to_abi_str("hi")), 4);
  EXPECT_EQ(service.token_id(tokenizer, to_abi_str("nope")), -1);
  Arena arena;
  cairn_i32_span ids{};
  ASSERT_EQ(service.encode(tokenizer, to_abi_str("hih"), 0, arena.table(), &ids), CAIRN_STATUS_OK);
  ASSERT_EQ(ids.count, 2U);
  EXPECT_EQ(ids.data[0], 4);
  EXPECT_EQ(ids.data[1], 2);
  cairn_str text{};
  ASSERT_EQ(service.decode(tokenizer, ids, 1, arena.table(), &text), CAIRN_STATUS_OK);
  EXPECT_EQ(from_abi_str(text), "hih");
  const cairn_i32_span ends = service.end_tokens(tokenizer);
  ASSERT_EQ(ends.count, 1U);
  EXPECT_EQ(ends.data[0], 1);
  EXPECT_EQ(service.encode(tokenizer, to_abi_str("hi"), 0, nullptr, &ids), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(service.encode(nullptr, to_abi_str("hi"), 0, arena.table(), &ids), CAIRN_STATUS_INVALID_ARGUMENT);
}

TEST_F(Weights, TheChatTemplateRendersValues) {
  const auto& service = host_table<cairn_chat_template_service>("cairn.chat_template");
  const cairn_chat_template* chat = nullptr;
  ASSERT_EQ(service.get(weights_->handle(), &chat), CAIRN_STATUS_OK) << last_status_message();
  const auto text = [](const char* value) {
    cairn_value out{};
    out.kind = CAIRN_VALUE_STRING;
    out.as.string = to_abi_str(value);
    return out;
  };
  const cairn_entry message[] = {{to_abi_str("role"), text("user")}, {to_abi_str("content"), text("hi")}};
  cairn_value element{};
  element.kind = CAIRN_VALUE_MAP;
  element.as.map = {message, 2};
  cairn_value messages{};
  messages.kind = CAIRN_VALUE_LIST;
  messages.as.list = {&element, 1};
  const cairn_entry style[] = {{to_abi_str("style"), text("!")}};
  const cairn_map kwargs{style, 1};
  Arena arena;
  cairn_str out{};
  ASSERT_EQ(service.render(chat, &messages, nullptr, 1, &kwargs, arena.table(), &out), CAIRN_STATUS_OK)
      << last_status_message();
  EXPECT_EQ(from_abi_str(out), "<s>[user]hi[assistant]!");
  ASSERT_EQ(service.render(chat, &messages, &messages, 0, nullptr, arena.table(), &out), CAIRN_STATUS_OK);
  EXPECT_EQ(from_abi_str(out), "<s>[user]hiT1");
  EXPECT_EQ(service.render(chat, nullptr, nullptr, 0, nullptr, arena.table(), &out), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(service.render(chat, &element, nullptr, 0, nullptr, arena.table(), &out), CAIRN_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace cairn
