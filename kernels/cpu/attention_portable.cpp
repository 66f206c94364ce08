// The attention kernels for one instruction set; see attention_kernels.hpp.
#include "kernels/cpu/simd_portable.hpp"
//
#include "kernels/cpu/attention_kernels.hpp"

namespace cairn::kernels {

const AttentionTable& attention_table_portable() {
  return kAttentionTable;
}

}  // namespace cairn::kernels
