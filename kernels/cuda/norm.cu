#include "kernels/cuda/norm.hpp"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Each thread sums a fixed stride of the row and the block adds the sums as a tree: one order whatever the batch.
__global__ void rms_norm_rows(const float* x, const float* weight, float eps, std::int64_t n, float* y) {
  __shared__ float sums[kThreads];
  const float* row = x + static_cast<std::int64_t>(blockIdx.x) * n;
  float* out = y + static_cast<std::int64_t>(blockIdx.x) * n;
  float sum = 0.0F;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) sum = fmaf(row[i], row[i], sum);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  const float scale = rsqrtf(sums[0] / static_cast<float>(n) + eps);
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) {
    out[i] = row[i] * scale * (weight != nullptr ? weight[i] : 1.0F);
  }
}

}  // namespace

cudaError_t rms_norm(const float* x, const float* weight, float eps, std::int64_t rows, std::int64_t n, float* y,
                     cudaStream_t stream) {
  if (rows <= 0 || n <= 0) return cudaSuccess;
  rms_norm_rows<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, weight, eps, n, y);
  return cudaGetLastError();
}

}  // namespace cairn::kernels::cuda
