// What a PackedMatrix owns. Private to kernels/cpu.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/linear.hpp"
#include "kernels/cpu/linear_layout.hpp"

namespace cairn::kernels {

// Consecutive tiles of one type. Of a glu matrix, tiles alternate gate, up when both have one type (one segment);
// otherwise segment 0 is the gate and segment 1 the up matrix.
struct Segment {
  WeightType type = WeightType::kF32;
  std::int64_t first_row = 0;  // output index of the first row
  std::int64_t rows = 0;
  std::int64_t tiles = 0;
  std::size_t offset = 0;  // of the first tile in the buffer
  std::size_t tile_stride = 0;
};

struct PackedMatrix::Impl {
  std::shared_ptr<std::uint8_t> buffer;  // shares its chunk with other matrices
  std::size_t bytes = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool glu = false;
  bool any_quantised = false;
  std::vector<Segment> segments;

  const std::uint8_t* tile(const Segment& s, std::int64_t index) const {
    return buffer.get() + s.offset + static_cast<std::size_t>(index) * s.tile_stride;
  }
};

}  // namespace cairn::kernels
