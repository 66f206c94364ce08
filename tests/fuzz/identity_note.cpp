// Fuzzes the reader of plugin identity notes: any bytes end in an identity or in BadFile.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/error.hpp"
#include "core/plugin/identity_note.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto identity = cairn::parse_identity_note({reinterpret_cast<const std::byte*>(data), size}, "fuzz.so");
    // What is promised of every identity: a name, and nothing that a terminal would act on.
    if (identity.id.empty()) std::abort();
    for (const std::string* text : {&identity.id, &identity.version, &identity.vendor, &identity.build,
                                    &identity.target, &identity.device_runtime, &identity.toolchain}) {
      for (const char c : *text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) std::abort();
      }
    }
  } catch (const cairn::BadFile&) {
    return 0;
  }
  return 0;
}
