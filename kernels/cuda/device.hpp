// The CUDA devices of this machine. Used by the host to choose a back-end and by tests to skip where there is none.
#pragma once

#include <string>
#include <vector>

namespace cairn::kernels::cuda {

struct DeviceInfo {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  std::size_t memory_bytes = 0;
};

// Every usable device; empty without one. `why` (may be null) then says what the driver answered.
std::vector<DeviceInfo> devices(std::string* why);

}  // namespace cairn::kernels::cuda
