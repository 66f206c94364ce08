// Deployment files as anybody may write them: a list of models or a BadFile, nothing else.
#include <cstddef>
#include <cstdint>

#include "core/base/error.hpp"
#include "host/config/deployment_yaml.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    cairn::parse_deployment({reinterpret_cast<const char*>(data), size}, "f.yaml", "/base");
  } catch (const cairn::BadFile&) {
  }
  return 0;
}
