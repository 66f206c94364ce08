// The element kernels for one instruction set; see element_kernels.hpp.
#include "kernels/cpu/simd_avx2.hpp"
//
#include "kernels/cpu/element_kernels.hpp"

namespace cairn::kernels {

const ElementTable& element_table_avx2() {
  return kElementTable;
}

}  // namespace cairn::kernels
