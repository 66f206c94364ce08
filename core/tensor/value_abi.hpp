// Owned copies of the ABI's values (kwargs, step_metadata), also made from core/base's Value.
// Used where a plugin hands the host a map that must outlive the call.
#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <string_view>
#include <vector>

#include "cairn/abi.h"
#include "core/base/value.hpp"
#include "core/tensor/tensor.hpp"

namespace cairn {

// What a map from outside may hold; beyond it InvalidArgument is thrown.
inline constexpr int kMaxValueDepth = 32;
inline constexpr std::size_t kMaxValueCount = 1U << 16;               // values in one tree
inline constexpr std::size_t kMaxValueBytes = std::size_t{64} << 20;  // strings and byte arrays of one tree

// A deep, owned copy of a cairn_map. Tensors are retained, unknown kinds become none, an opaque object is refused
// (NotSupported): a copy cannot own it twice. Move-only; the view stays valid across moves.
class OwnedMap {
 public:
  OwnedMap() = default;
  OwnedMap(OwnedMap&&) noexcept = default;
  OwnedMap& operator=(OwnedMap&&) noexcept = default;

  // `what` names the map in error messages ("step_metadata of the model").
  static OwnedMap copy_of(const cairn_map& map, const char* what);
  // `value` is a map or none. Throws InvalidArgument otherwise.
  static OwnedMap from_value(const Value& value, const char* what);
  // `base` with the entries of `overlay` on top.
  static OwnedMap merged(const cairn_map& base, const cairn_map& overlay, const char* what);

  const cairn_map& view() const noexcept { return view_; }
  // The entry `key`, or nullptr.
  const cairn_value* find(std::string_view key) const noexcept;

 private:
  friend class MapBuilder;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_;
  std::vector<TensorPtr> tensors_;
  cairn_map view_{};
};

}  // namespace cairn
