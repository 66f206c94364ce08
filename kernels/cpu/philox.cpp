// The counter-based generator Philox4x32-10 (Salmon et al., SC 2011); see sampling.hpp.
#include "kernels/cpu/sampling.hpp"

namespace cairn::kernels {

void philox4x32(const std::uint32_t counter[4], const std::uint32_t key[2], std::uint32_t out[4]) {
  std::uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

double philox_uniform(std::uint64_t seed, std::uint64_t position, std::uint32_t stream) {
  const std::uint32_t counter[4] = {static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
                                    stream, 0};
  const std::uint32_t key[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  std::uint32_t out[4];
  philox4x32(counter, key, out);
  const std::uint64_t bits = (std::uint64_t{out[0]} << 32) | out[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace cairn::kernels
