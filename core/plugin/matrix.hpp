// What cairn_matrix is on the host's side. Made by the weights service, used by the ops service.
#pragma once

#include <cstdint>

#include "cairn/abi.h"
#include "kernels/cpu/linear.hpp"

namespace cairn {

struct Matrix {
  kernels::PackedMatrix packed;
  std::int64_t rows = 0;  // of the sources: gate and up rows together for a gated matrix
  std::int64_t columns = 0;

  cairn_matrix* handle() noexcept { return reinterpret_cast<cairn_matrix*>(this); }
  static const Matrix* from_handle(const cairn_matrix* handle) noexcept {
    return reinterpret_cast<const Matrix*>(handle);
  }
};

}  // namespace cairn
