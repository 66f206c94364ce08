// Detection and override of the instruction set; see cpu_features.hpp.
#include "kernels/cpu/cpu_features.hpp"

#include <cpuid.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace cairn::kernels {
namespace {

// clang 14's __builtin_cpu_supports does not know this one: leaf 1, ECX bit 29.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1U << 29)) != 0;
}

Isa detect_best() {
  Isa best = Isa::kPortable;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (isa_supported(isa)) best = isa;
  }
  if (const char* name = std::getenv("CAIRN_CPU_ISA")) {
    for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
      if (std::strcmp(name, isa_name(isa)) == 0 && isa_supported(isa)) return isa;
    }
  }
  return best;
}

std::atomic<Isa>& active() {
  static std::atomic<Isa> isa{best_isa()};
  return isa;
}

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

bool isa_supported(Isa isa) {
  __builtin_cpu_init();
  switch (isa) {
    case Isa::kPortable:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case Isa::kAvx512:
      return isa_supported(Isa::kAvx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vnni");
  }
  return false;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

Isa best_isa() {
  static const Isa best = detect_best();
  return best;
}

Isa active_isa() {
  return active().load(std::memory_order_relaxed);
}

void set_isa_for_tests(Isa isa) {
  if (isa_supported(isa)) active().store(isa, std::memory_order_relaxed);
}

}  // namespace cairn::kernels
