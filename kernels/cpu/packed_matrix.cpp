// Building a PackedMatrix from GGUF or float rows; see linear.hpp.
#include "kernels/cpu/packed_matrix.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/cpu/pack_tile.hpp"
#include "kernels/cpu/weight_memory.hpp"

namespace cairn::kernels {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

void check_source(const MatrixSource& s, std::int64_t cols) {
  if (cols < 1 || cols > kMaxSize || s.rows < 0 || s.rows > kMaxSize) {
    throw std::invalid_argument("PackedMatrix: a part of " + std::to_string(s.rows) + " rows by " +
                                std::to_string(cols) + " columns is out of range; sizes must be positive.");
  }
  if (s.rows > 0 && s.data == nullptr) {
    throw std::invalid_argument("PackedMatrix: a part of " + std::to_string(s.rows) + " rows has no data.");
  }
  const auto dense = static_cast<std::int64_t>(weight_row_bytes(s.type, cols));
  if (s.row_stride_bytes != 0 && s.row_stride_bytes < dense) {
    throw std::invalid_argument("PackedMatrix: the row stride of " + std::to_string(s.row_stride_bytes) +
                                " bytes is below the " + std::to_string(dense) + " bytes of a row.");
  }
}

std::int64_t tiles_of(std::int64_t rows) {
  return (rows + kTile - 1) / kTile;
}

// Lays segments one after the other and allocates the buffer.
void lay_out(PackedMatrix::Impl& m) {
  std::size_t bytes = 0;
  for (Segment& s : m.segments) {
    s.offset = bytes;
    s.tile_stride = tile_bytes(s.type, m.cols);
    if (s.tiles > 0 &&
        s.tile_stride > (std::numeric_limits<std::size_t>::max() / 4 - bytes) / static_cast<std::size_t>(s.tiles)) {
      throw std::invalid_argument("PackedMatrix: the packed size overflows.");
    }
    bytes += s.tile_stride * static_cast<std::size_t>(s.tiles);
    m.any_quantised = m.any_quantised || weight_is_quantised(s.type);
  }
  m.bytes = bytes;
  m.buffer = allocate_weights(bytes);
}

void pack_rows(const MatrixSource& source, std::int64_t cols, std::int64_t first_row, std::uint8_t* tile) {
  const std::int64_t dense = static_cast<std::int64_t>(weight_row_bytes(source.type, cols));
  const std::int64_t stride = source.row_stride_bytes != 0 ? source.row_stride_bytes : dense;
  const std::uint8_t* rows[kTile];
  const int count = static_cast<int>(std::min<std::int64_t>(kTile, source.rows - first_row));
  for (int i = 0; i < count; ++i) rows[i] = static_cast<const std::uint8_t*>(source.data) + (first_row + i) * stride;
  std::memset(tile, 0, tile_bytes(source.type, cols));
  pack_tile(source.type, rows, count, cols, tile);
}

}  // namespace

PackedMatrix::PackedMatrix() = default;
PackedMatrix::~PackedMatrix() = default;
PackedMatrix::PackedMatrix(PackedMatrix&&) noexcept = default;
PackedMatrix& PackedMatrix::operator=(PackedMatrix&&) noexcept = default;

PackedMatrix PackedMatrix::pack(std::span<const MatrixSource> parts, std::int64_t cols, const Parallel& parallel) {
  PackedMatrix result;
  result.impl_ = std::make_unique<Impl>();
  Impl& m = *result.impl_;
  m.cols = cols;
  for (const MatrixSource& part : parts) {
    check_source(part, cols);
    m.segments.push_back({part.type, m.rows, part.rows, tiles_of(part.rows), 0, 0});
    m.rows += part.rows;
  }
  lay_out(m);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Segment& s = m.segments[i];
    parallel.for_each(static_cast<int>(s.tiles), [&](int t, int) {
      pack_rows(parts[i], cols, std::int64_t{t} * kTile, const_cast<std::uint8_t*>(m.tile(s, t)));
    });
  }
  return result;
}

PackedMatrix PackedMatrix::pack_glu(const MatrixSource& gate, const MatrixSource& up, std::int64_t cols,
                                    const Parallel& parallel) {
  check_source(gate, cols);
  check_source(up, cols);
  if (gate.rows != up.rows) {
    throw std::invalid_argument("PackedMatrix: gate has " + std::to_string(gate.rows) + " rows and up has " +
                                std::to_string(up.rows) + "; they must be equal.");
  }
  PackedMatrix result;
  result.impl_ = std::make_unique<Impl>();
  Impl& m = *result.impl_;
  m.cols = cols;
  m.rows = gate.rows;
  m.glu = true;
  const std::int64_t tiles = tiles_of(gate.rows);
  const bool interleaved = gate.type == up.type;
  if (interleaved) {
    m.segments.push_back({gate.type, 0, gate.rows, 2 * tiles, 0, 0});
  } else {
    m.segments.push_back({gate.type, 0, gate.rows, tiles, 0, 0});
    m.segments.push_back({up.type, 0, up.rows, tiles, 0, 0});
  }
  lay_out(m);
  parallel.for_each(static_cast<int>(2 * tiles), [&](int t, int) {
    const bool is_up = t % 2 == 1;
    const Segment& s = m.segments[!interleaved && is_up ? 1 : 0];
    const std::int64_t index = interleaved ? t : t / 2;
    pack_rows(is_up ? up : gate, cols, std::int64_t{t / 2} * kTile, const_cast<std::uint8_t*>(m.tile(s, index)));
  });
  return result;
}

std::int64_t PackedMatrix::rows() const {
  return impl_ ? impl_->rows : 0;
}
std::int64_t PackedMatrix::cols() const {
  return impl_ ? impl_->cols : 0;
}
bool PackedMatrix::is_glu() const {
  return impl_ && impl_->glu;
}
bool PackedMatrix::empty() const {
  return impl_ == nullptr;
}
std::size_t PackedMatrix::bytes() const {
  return impl_ ? impl_->bytes : 0;
}

void PackedMatrix::dequantize_row(std::int64_t row, float* dst) const {
  for (const Segment& s : impl_->segments) {
    const std::int64_t local = row - s.first_row;
    if (local < 0 || local >= s.rows) continue;
    unpack_tile_row(s.type, impl_->tile(s, local / kTile), static_cast<int>(local % kTile), impl_->cols, dst);
    return;
  }
}

}  // namespace cairn::kernels
