// The prepacked weight layout and the quantised activation layout that packing, dispatch and the kernels agree on.
//
// A tile is 16 outputs by all inputs. Floats: [K][16] elements. Block types: first all scales, then per 32 inputs the
// codes as unsigned bytes in "groups": group g holds inputs 4g..4g+3 of the 16 outputs, byte 4 * output + input.
//   4 bits: load j (of 4) holds group 2j in the low and group 2j + 1 in the high nibbles.
//   5 bits: the same, then 64 bytes whose bit g of byte b is bit 4 of byte b of group g.
//   6 bits: the same, then 2 x 64 bytes; in the first, bits 2g and 2g + 1 of byte b belong to group g, the second
//           holds groups 4..7 likewise.
//   8 bits: the 8 groups.
// Codes are the unsigned GGUF codes (Q8_0: + 128).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/types.hpp"

namespace cairn::kernels {

inline constexpr int kTile = 16;   // outputs per tile
inline constexpr int kBlock = 32;  // inputs per block of activations and codes
inline constexpr int kSuperBlock = 256;
inline constexpr int kMaxTileRows = 4;  // activation rows per kernel call
inline constexpr int kMaxTiles = 2;     // tiles per kernel call

// One quantised 32-block of activations.
struct ActivationBlock {
  std::uint8_t q[64];        // 16-bit integers in the order that the instruction set likes
  float scale;               // amax / 32639, or 0, or NaN when the block holds a NaN or an infinity
  float scaled_sum;          // scale * sum
  std::int32_t sum;          // of the 32 integers
  std::int32_t half_sum[2];  // of the first and the last 16
};

// The largest integer: 127 * 256 + 127, so that both bytes of the split fit in a signed byte.
inline constexpr float kActivationMax = 32639.0F;
// Blocks whose largest magnitude is below this are taken as zero: 1 / scale would overflow.
inline constexpr float kActivationTiny = 1e-30F;

// These are static, not inline: code compiled for one instruction set must not be merged with code for another.
static constexpr std::int64_t blocks_of(std::int64_t k) {
  return k / kBlock + (k % kBlock != 0);
}
static constexpr std::int64_t superblocks_of(std::int64_t blocks) {
  return (blocks + 7) / 8;
}

// Bytes of the codes of one 32-block of a tile.
static constexpr std::size_t code_bytes(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ4_K:
      return 256;
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ5_K:
      return 320;
    case WeightType::kQ6_K:
      return 384;
    case WeightType::kQ8_0:
      return 512;
    default:
      return 0;
  }
}

// Bytes of a tile's scale section, a multiple of 64. Q4_0, Q5_0, Q8_0: per block 16 f16 d. Q4_1, Q5_1: 16 f16 d, 16
// f16 m. Q4_K, Q5_K: per super-block 16 f16 d, 16 f16 dmin, 8 x 16 u8 scales, 8 x 16 u8 minimums. Q6_K: per
// super-block 16 f16 d, 16 x 16 i8 scales.
static constexpr std::size_t scale_section_bytes(WeightType type, std::int64_t blocks) {
  std::size_t bytes = 0;
  const auto n = static_cast<std::size_t>(blocks);
  const auto supers = static_cast<std::size_t>(superblocks_of(blocks));
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ5_0:
    case WeightType::kQ8_0:
      bytes = n * 32;
      break;
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
      bytes = n * 64;
      break;
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      bytes = supers * 320;
      break;
    case WeightType::kQ6_K:
      bytes = supers * 288;
      break;
    default:
      break;
  }
  return (bytes + 63) / 64 * 64;
}

// Bytes of one tile of K inputs, a multiple of 64.
static constexpr std::size_t tile_bytes(WeightType type, std::int64_t k) {
  if (!weight_is_quantised(type)) {
    const std::size_t bytes = static_cast<std::size_t>(k) * kTile * (type == WeightType::kF32 ? 4 : 2);
    return (bytes + 63) / 64 * 64;
  }
  const std::int64_t blocks = blocks_of(k);
  return scale_section_bytes(type, blocks) + static_cast<std::size_t>(blocks) * code_bytes(type);
}

}  // namespace cairn::kernels
