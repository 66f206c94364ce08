// Tile packing; see pack_tile.hpp. Runs once per weight at load time.
#include "kernels/cpu/pack_tile.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/linear_layout.hpp"

namespace cairn::kernels {
namespace {

// One 32-run of codes and, where the block carries them, its scale fields, taken from a GGUF block.
struct Codes {
  std::uint8_t q[kBlock];
};

void copy_half(std::uint8_t* to, const std::uint8_t* from) {
  std::memcpy(to, from, 2);
}

void codes_32(WeightType type, const std::uint8_t* block, Codes& c) {
  const bool has_min = type == WeightType::kQ4_1 || type == WeightType::kQ5_1;
  const std::uint8_t* p = block + (has_min ? 4 : 2);
  if (type == WeightType::kQ8_0) {
    for (int i = 0; i < kBlock; ++i) c.q[i] = static_cast<std::uint8_t>(p[i] ^ 0x80);  // + 128
    return;
  }
  const bool five = type == WeightType::kQ5_0 || type == WeightType::kQ5_1;
  const std::uint8_t* nibbles = p + (five ? 4 : 0);
  for (int i = 0; i < kBlock; ++i) {
    int v = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
    if (five) v |= ((p[i / 8] >> (i % 8)) & 1) << 4;
    c.q[i] = static_cast<std::uint8_t>(v);
  }
}

// Run `j` (of 8) of a super-block.
void codes_256(WeightType type, const std::uint8_t* block, int j, Codes& c) {
  for (int i = 0; i < kBlock; ++i) {
    int v;
    if (type == WeightType::kQ6_K) {
      const int half = j / 4;
      const int quarter = j % 4;
      const int low = block[half * 64 + (quarter % 2) * 32 + i] >> ((quarter / 2) * 4);
      const int high = block[128 + half * 32 + i] >> (quarter * 2);
      v = (low & 15) | ((high & 3) << 4);
    } else {
      const bool five = type == WeightType::kQ5_K;
      const std::uint8_t* nibbles = block + (five ? 48 : 16);
      v = (nibbles[(j / 2) * 32 + i] >> ((j % 2) * 4)) & 15;
      if (five) v |= ((block[16 + i] >> j) & 1) << 4;
    }
    c.q[i] = static_cast<std::uint8_t>(v);
  }
}

void put_codes(WeightType type, const Codes& c, int lane, std::uint8_t* codes) {
  for (int i = 0; i < kBlock; ++i) {
    const int group = i / 4;
    const int byte = lane * 4 + i % 4;
    const int v = c.q[i];
    if (type == WeightType::kQ8_0) {
      codes[group * 64 + byte] = static_cast<std::uint8_t>(v);
      continue;
    }
    std::uint8_t& nibbles = codes[(group / 2) * 64 + byte];
    nibbles = static_cast<std::uint8_t>(nibbles | ((v & 15) << ((group % 2) * 4)));
    if (code_bytes(type) == 320) {
      codes[256 + byte] = static_cast<std::uint8_t>(codes[256 + byte] | ((v >> 4) << group));
    } else if (code_bytes(type) == 384) {
      std::uint8_t& high = codes[256 + (group / 4) * 64 + byte];
      high = static_cast<std::uint8_t>(high | ((v >> 4) << ((group % 4) * 2)));
    }
  }
}

int get_code(WeightType type, const std::uint8_t* codes, int lane, int i) {
  const int group = i / 4;
  const int byte = lane * 4 + i % 4;
  if (type == WeightType::kQ8_0) return codes[group * 64 + byte];
  int v = (codes[(group / 2) * 64 + byte] >> ((group % 2) * 4)) & 15;
  if (code_bytes(type) == 320) {
    v |= ((codes[256 + byte] >> group) & 1) << 4;
  } else if (code_bytes(type) == 384) {
    v |= ((codes[256 + (group / 4) * 64 + byte] >> ((group % 4) * 2)) & 3) << 4;
  }
  return v;
}

void put_super_scales(WeightType type, const std::uint8_t* block, int lane, std::uint8_t* super) {
  if (type == WeightType::kQ6_K) {
    copy_half(super + lane * 2, block + 208);
    for (int j = 0; j < 16; ++j) super[32 + j * 16 + lane] = block[192 + j];
    return;
  }
  copy_half(super + lane * 2, block);
  copy_half(super + 32 + lane * 2, block + 2);
  const std::uint8_t* s = block + 4;
  for (int j = 0; j < 8; ++j) {
    const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
    const int min = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
    super[64 + j * 16 + lane] = static_cast<std::uint8_t>(scale);
    super[192 + j * 16 + lane] = static_cast<std::uint8_t>(min);
  }
}

void pack_row(WeightType type, const std::uint8_t* row, int lane, std::int64_t k, std::uint8_t* tile) {
  const std::int64_t blocks = blocks_of(k);
  const auto block_bytes = static_cast<std::size_t>(weight_block_bytes(type));
  std::uint8_t* codes = tile + scale_section_bytes(type, blocks);
  const bool super = weight_block_size(type) == kSuperBlock;
  const bool has_min = type == WeightType::kQ4_1 || type == WeightType::kQ5_1;
  Codes c;
  for (std::int64_t b = 0; b < blocks; ++b) {
    if (super) {
      const std::uint8_t* block = row + static_cast<std::size_t>(b / 8) * block_bytes;
      if (b % 8 == 0) {
        put_super_scales(type, block, lane, tile + (b / 8) * (type == WeightType::kQ6_K ? 288 : 320));
      }
      codes_256(type, block, static_cast<int>(b % 8), c);
    } else {
      const std::uint8_t* block = row + static_cast<std::size_t>(b) * block_bytes;
      std::uint8_t* scales = tile + b * (has_min ? 64 : 32);
      copy_half(scales + lane * 2, block);
      if (has_min) copy_half(scales + 32 + lane * 2, block + 2);
      codes_32(type, block, c);
    }
    put_codes(type, c, lane, codes + static_cast<std::size_t>(b) * code_bytes(type));
  }
}

float half_at(const std::uint8_t* p) {
  std::uint16_t h;
  std::memcpy(&h, p, sizeof h);
  return f16_to_f32(h);
}

// The arithmetic here is dequantize_row()'s, so that a tied embedding gives the same bits from either copy.
float value_at(WeightType type, const std::uint8_t* tile, const std::uint8_t* codes, std::int64_t block, int lane,
               int i) {
  const auto v = static_cast<float>(get_code(type, codes, lane, i));
  switch (type) {
    case WeightType::kQ4_0:
      return half_at(tile + block * 32 + lane * 2) * (v - 8.0F);
    case WeightType::kQ5_0:
      return half_at(tile + block * 32 + lane * 2) * (v - 16.0F);
    case WeightType::kQ8_0:
      return half_at(tile + block * 32 + lane * 2) * (v - 128.0F);
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
      return half_at(tile + block * 64 + lane * 2) * v + half_at(tile + block * 64 + 32 + lane * 2);
    case WeightType::kQ6_K: {
      const std::uint8_t* super = tile + (block / 8) * 288;
      const auto scale = static_cast<std::int8_t>(super[32 + ((block % 8) * 2 + i / 16) * 16 + lane]);
      return half_at(super + lane * 2) * static_cast<float>(scale) * (v - 32.0F);
    }
    default: {
      const std::uint8_t* super = tile + (block / 8) * 320;
      const float d = half_at(super + lane * 2) * static_cast<float>(super[64 + (block % 8) * 16 + lane]);
      const float m = half_at(super + 32 + lane * 2) * static_cast<float>(super[192 + (block % 8) * 16 + lane]);
      return d * v - m;
    }
  }
}

}  // namespace

void pack_tile(WeightType type, const std::uint8_t* const* rows, int count, std::int64_t k, std::uint8_t* tile) {
  for (int lane = 0; lane < count; ++lane) {
    if (weight_is_quantised(type)) {
      pack_row(type, rows[lane], lane, k, tile);
      continue;
    }
    const std::size_t size = type == WeightType::kF32 ? 4 : 2;
    for (std::int64_t i = 0; i < k; ++i) {
      std::memcpy(tile + (static_cast<std::size_t>(i) * kTile + static_cast<std::size_t>(lane)) * size,
                  rows[lane] + static_cast<std::size_t>(i) * size, size);
    }
  }
}

void unpack_tile_row(WeightType type, const std::uint8_t* tile, int lane, std::int64_t k, float* dst) {
  if (!weight_is_quantised(type)) {
    const std::size_t size = type == WeightType::kF32 ? 4 : 2;
    for (std::int64_t i = 0; i < k; ++i) {
      const std::uint8_t* p = tile + (static_cast<std::size_t>(i) * kTile + static_cast<std::size_t>(lane)) * size;
      kernels::dequantize_row(type, p, 1, dst + i);
    }
    return;
  }
  const std::uint8_t* codes = tile + scale_section_bytes(type, blocks_of(k));
  for (std::int64_t b = 0; b < blocks_of(k); ++b, codes += code_bytes(type)) {
    const int count = static_cast<int>(std::min<std::int64_t>(kBlock, k - b * kBlock));
    for (int i = 0; i < count; ++i) dst[b * kBlock + i] = value_at(type, tile, codes, b, lane, i);
  }
}

}  // namespace cairn::kernels
