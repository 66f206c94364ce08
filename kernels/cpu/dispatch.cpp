// The one place that maps an instruction set to its tables.
#include "kernels/cpu/dispatch.hpp"

namespace cairn::kernels {

const LinearTable& linear_table_portable();
const LinearTable& linear_table_avx2();
const LinearTable& linear_table_avx512();
const ElementTable& element_table_portable();
const ElementTable& element_table_avx2();
const ElementTable& element_table_avx512();
const AttentionTable& attention_table_portable();
const AttentionTable& attention_table_avx2();
const AttentionTable& attention_table_avx512();

const LinearTable& linear_table(Isa isa) {
  if (isa == Isa::kAvx512) return linear_table_avx512();
  return isa == Isa::kAvx2 ? linear_table_avx2() : linear_table_portable();
}

const ElementTable& element_table(Isa isa) {
  if (isa == Isa::kAvx512) return element_table_avx512();
  return isa == Isa::kAvx2 ? element_table_avx2() : element_table_portable();
}

const AttentionTable& attention_table(Isa isa) {
  if (isa == Isa::kAvx512) return attention_table_avx512();
  return isa == Isa::kAvx2 ? attention_table_avx2() : attention_table_portable();
}

}  // namespace cairn::kernels
