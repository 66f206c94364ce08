// Every byte of a small file is damaged in turn, and the file cut at every length: the readers must refuse it with the
// file's name or give tensors that lie inside it. Run under the address sanitizer this also proves no read goes astray.
#include <gtest/gtest.h>

#include <random>

#include "core/base/error.hpp"
#include "core/weights/gguf.hpp"
#include "core/weights/safetensors.hpp"
#include "tests/unit/weights/file_builder.hpp"

namespace cairn {
namespace {

using test::Bytes;
using test::bytes_of;
using test::GgufBuilder;

constexpr std::string_view kName = "mutant";

Bytes small_gguf() {
  return GgufBuilder()
      .string("general.architecture", "llama")
      .scalar<std::uint32_t>("general.alignment", test::kU32, 32)
      .scalar<float>("eps", test::kF32, 1e-5F)
      .strings("tokens", {"a", "bc", ""})
      .array<float>("scores", test::kF32, {0, -1, -2})
      .array<std::int64_t>("types", test::kI64, {1, 2, 3})
      .array<std::uint8_t>("flags", test::kBool, {1, 0})
      .tensor("weight", {32, 2}, test::kTensorQ8_0, Bytes(68))
      .tensor("bias", {2, 1}, test::kTensorF32, bytes_of({1, 2}))
      .build();
}

Bytes small_safetensors() {
  return test::safetensors_file(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})",
      14);
}

// True when the bytes were taken, false when they were refused in good order.
template <class Parse>
bool survives(const Bytes& bytes, Parse&& parse) {
  // A copy of its own size, so that the address sanitizer guards its exact end.
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  try {
    for (const TensorInfo& tensor : parse(exact)) {
      EXPECT_GE(tensor.data, exact.data());
      EXPECT_LE(tensor.nbytes, static_cast<std::size_t>(exact.data() + exact.size() - tensor.data));
      EXPECT_EQ(checked_nbytes(tensor.dtype, tensor.shape), tensor.nbytes);
    }
    return true;
  } catch (const BadFile& error) {
    EXPECT_NE(std::string_view(error.what()).find(kName), std::string_view::npos) << error.what();
    EXPECT_NE(std::string_view(error.what()).find("byte "), std::string_view::npos) << error.what();
  } catch (const NotSupported& error) {
    EXPECT_NE(std::string_view(error.what()).find(kName), std::string_view::npos) << error.what();
  }
  return false;
}

bool gguf_survives(const Bytes& bytes) {
  return survives(bytes,
                  [](std::span<const std::byte> b) { return GgufFile::parse(b, std::string(kName))->tensors(); });
}

bool safetensors_survives(const Bytes& bytes) {
  return survives(bytes, [](std::span<const std::byte> b) { return parse_safetensors(b, std::string(kName)).tensors; });
}

template <class Survives>
void damage_every_byte(const Bytes& good, Survives&& still_survives) {
  ASSERT_TRUE(still_survives(good));
  int refused = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xFF, 0x20}) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(change);
      refused += still_survives(bad) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 100);  // most of a small file is structure
}

TEST(MutationTest, AGgufFileWithOneBadByteIsRefusedOrSound) {
  damage_every_byte(small_gguf(), gguf_survives);
}

TEST(MutationTest, ASafetensorsFileWithOneBadByteIsRefusedOrSound) {
  damage_every_byte(small_safetensors(), safetensors_survives);
}

TEST(MutationTest, ACutFileIsRefused) {
  const Bytes gguf = small_gguf();
  for (std::size_t size = 0; size < gguf.size(); ++size) {
    EXPECT_FALSE(gguf_survives(Bytes(gguf.begin(), gguf.begin() + static_cast<std::ptrdiff_t>(size)))) << size;
  }
  const Bytes safetensors = small_safetensors();
  for (std::size_t size = 0; size < safetensors.size(); ++size) {
    EXPECT_FALSE(
        safetensors_survives(Bytes(safetensors.begin(), safetensors.begin() + static_cast<std::ptrdiff_t>(size))))
        << size;
  }
}

// Every aligned and unaligned 4- and 8-byte field set to values on which arithmetic overflows.
template <class Survives>
void plant_numbers(const Bytes& good, Survives&& still_survives) {
  const std::uint64_t numbers[] = {0,
                                   1,
                                   0x7FFFFFFF,
                                   0x80000000,
                                   0xFFFFFFFF,
                                   0x7FFFFFFFFFFFFFFF,
                                   0x8000000000000000,
                                   0xFFFFFFFFFFFFFFFF,
                                   0xFFFFFFFFFFFFFFE0,
                                   good.size(),
                                   good.size() - 1};
  int refused = 0;
  for (std::size_t i = 0; i + 8 <= good.size(); ++i) {
    for (const std::uint64_t number : numbers) {
      for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
        Bytes bad = good;
        std::memcpy(bad.data() + i, &number, width);
        refused += still_survives(bad) ? 0 : 1;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(MutationTest, AGgufFileWithExtremeNumbersIsRefusedOrSound) {
  plant_numbers(small_gguf(), gguf_survives);
}

TEST(MutationTest, ASafetensorsFileWithExtremeNumbersIsRefusedOrSound) {
  plant_numbers(small_safetensors(), safetensors_survives);
}

TEST(MutationTest, RandomDamageIsRefusedOrSound) {
  std::mt19937 random(20240611);
  const Bytes gguf = small_gguf();
  const Bytes safetensors = small_safetensors();
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const bool is_gguf = round % 2 == 0;
    Bytes bad = is_gguf ? gguf : safetensors;
    const auto changes = 1 + random() % 4;
    for (unsigned change = 0; change < changes; ++change) {
      const std::size_t at = random() % bad.size();
      switch (random() % 3) {
        case 0:
          bad[at] = static_cast<std::byte>(random());
          break;
        case 1:
          bad.erase(bad.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        default:
          bad.insert(bad.begin() + static_cast<std::ptrdiff_t>(at), bad[random() % bad.size()]);
      }
    }
    refused += (is_gguf ? gguf_survives(bad) : safetensors_survives(bad)) ? 0 : 1;
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace cairn
