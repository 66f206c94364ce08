// The matrix kernels for one instruction set; see linear_kernels.hpp.
#include "kernels/cpu/simd_avx2.hpp"
//
#include "kernels/cpu/linear_kernels.hpp"

namespace cairn::kernels {

const LinearTable& linear_table_avx2() {
  return kLinearTable;
}

}  // namespace cairn::kernels
