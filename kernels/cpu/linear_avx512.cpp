// The matrix kernels for one instruction set; see linear_kernels.hpp.
#include "kernels/cpu/simd_avx512.hpp"
//
#include "kernels/cpu/linear_kernels.hpp"

namespace cairn::kernels {

const LinearTable& linear_table_avx512() {
  return kLinearTable;
}

}  // namespace cairn::kernels
