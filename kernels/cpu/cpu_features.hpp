// Which instruction set the kernels run on: detected once, overridable by CAIRN_CPU_ISA=portable|avx2|avx512.
// Used by the dispatch table, by tests that walk every set, and by `cairn version`.
#pragma once

#include <vector>

namespace cairn::kernels {

enum class Isa { kPortable, kAvx2, kAvx512 };

const char* isa_name(Isa isa);
// True when this CPU and the operating system can run it. kAvx512 means F, BW, VL, DQ, VNNI.
bool isa_supported(Isa isa);
// Every supported set, portable first.
std::vector<Isa> supported_isas();
// The best supported set, or the one CAIRN_CPU_ISA names when that is supported (an unsupported or unknown name is
// ignored). Read once.
Isa best_isa();
// The set in use: best_isa() unless a test forced another.
Isa active_isa();
// Forces a supported set for the whole process. Not while kernels run; PackedMatrix and caches stay valid.
void set_isa_for_tests(Isa isa);

}  // namespace cairn::kernels
