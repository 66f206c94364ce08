// Typed look-ups in the metadata of open weights: GGUF keys, or dotted paths into config.json. Used by config.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/services.hpp"

namespace llama {

class Metadata {
 public:
  // Throws cairn::Error when the host has no service "cairn.weights".
  explicit Metadata(const cairn_weights* weights);

  bool is_gguf() const;
  std::string architecture() const;

  // Nothing when the key is absent (or null in JSON); a DATA_LOSS error naming the key when it is of another kind.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  std::optional<std::vector<float>> reals(std::string_view key) const;
  // One integer or a list of them.
  std::vector<std::int32_t> ids(std::string_view key) const;

  // An error for a key that is absent, or below `minimum` or above `maximum`.
  std::int64_t required_integer(std::string_view key, std::int64_t minimum, std::int64_t maximum) const;

 private:
  std::optional<cairn_value> find(std::string_view key) const;

  const cairn_weights* weights_;
  const cairn_weights_service* service_;
};

}  // namespace llama
