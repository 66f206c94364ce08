// Detection and override of the instruction set; see cpu_features.hpp.
#include "kernels/cpu/cpu_features.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace cairn::kernels {
namespace {

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
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
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
