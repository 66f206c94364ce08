// Rearranging GGUF rows into a tile and back; see linear_layout.hpp for the layout. Private to kernels/cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/types.hpp"

namespace cairn::kernels {

// Fills one zeroed tile from rows[0..count), count <= 16; missing rows stay zero.
void pack_tile(WeightType type, const std::uint8_t* const* rows, int count, std::int64_t k, std::uint8_t* tile);

// dst[0..k) = the exact values of output `lane` of a tile.
void unpack_tile_row(WeightType type, const std::uint8_t* tile, int lane, std::int64_t k, float* dst);

}  // namespace cairn::kernels
