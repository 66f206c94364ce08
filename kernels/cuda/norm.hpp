// RMSNorm on a CUDA device. All pointers are device memory; work is ordered on `stream`.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace cairn::kernels::cuda {

// y[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight, for `rows` rows of `n` float32 values. x == y is allowed; weight may
// be null. One block per row, so a row's result does not depend on the other rows.
cudaError_t rms_norm(const float* x, const float* weight, float eps, std::int64_t rows, std::int64_t n, float* y,
                     cudaStream_t stream);

}  // namespace cairn::kernels::cuda
