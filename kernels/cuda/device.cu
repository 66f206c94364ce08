#include <cuda_runtime.h>

#include "kernels/cuda/device.hpp"

namespace cairn::kernels::cuda {

std::vector<DeviceInfo> devices(std::string* why) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    if (why != nullptr) *why = cudaGetErrorString(error);
    return {};
  }
  std::vector<DeviceInfo> found;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    found.push_back({properties.name, properties.major, properties.minor, properties.totalGlobalMem});
  }
  if (found.empty() && why != nullptr) *why = "the driver lists no device";
  return found;
}

}  // namespace cairn::kernels::cuda
