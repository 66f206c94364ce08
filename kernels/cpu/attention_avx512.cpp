// The attention kernels for one instruction set; see attention_kernels.hpp.
#include "kernels/cpu/simd_avx512.hpp"
//
#include "kernels/cpu/attention_kernels.hpp"

namespace cairn::kernels {

const AttentionTable& attention_table_avx512() {
  return kAttentionTable;
}

}  // namespace cairn::kernels
