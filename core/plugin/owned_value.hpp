// A deep copy of a cairn_value that owns what is in it: strings and bytes copied, tensors retained, opaque objects
// taken over. Used by RequestStateStore.
#pragma once

#include <cstddef>
#include <memory>

#include "cairn/abi.h"

namespace cairn {

// One thread at a time. Not copyable: an opaque object has one owner.
class OwnedValue {
 public:
  OwnedValue() = default;
  // Throws InvalidArgument (nesting over kMaxAbiValueDepth, null pointers with a count, over 1 GiB), std::bad_alloc;
  // the opaque objects are still the caller's then.
  explicit OwnedValue(const cairn_value& value);
  OwnedValue(OwnedValue&& other) noexcept;
  OwnedValue& operator=(OwnedValue&& other) noexcept;
  ~OwnedValue();

  // Valid until this object is destroyed or assigned to; moving it along keeps what the pointers refer to.
  const cairn_value& get() const noexcept { return value_; }

 private:
  cairn_value value_{};
  std::unique_ptr<std::byte[]> memory_;  // of strings, bytes, lists and maps
};

}  // namespace cairn
