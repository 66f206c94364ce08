#include "metadata.hpp"

#include <limits>

#include "cairn/error.hpp"

namespace llama {
namespace {

[[noreturn]] void wrong_kind(std::string_view key, const char* expected) {
  throw cairn::data_loss("the weights' metadata key '" + std::string(key) + "' is not " + expected);
}

std::optional<double> number(const cairn_value& value) {
  if (value.kind == CAIRN_VALUE_FLOAT) return value.as.real;
  if (value.kind == CAIRN_VALUE_INT) return static_cast<double>(value.as.integer);
  return std::nullopt;
}

}  // namespace

Metadata::Metadata(const cairn_weights* weights) : weights_(weights), service_(cairn::services().weights) {
  if (!CAIRN_HAS(service_, cairn_weights_service, prepack)) {
    throw cairn::unsupported("this host has no service cairn.weights");
  }
}

bool Metadata::is_gguf() const {
  return service_->format(weights_) == CAIRN_WEIGHTS_GGUF;
}

std::string Metadata::architecture() const {
  return std::string(cairn::text(service_->architecture(weights_)));
}

std::optional<cairn_value> Metadata::find(std::string_view key) const {
  cairn_value value{};
  const cairn_status status = service_->metadata(weights_, cairn::str(key), &value);
  if (status == CAIRN_STATUS_NOT_FOUND) return std::nullopt;
  cairn::check(status);
  if (value.kind == CAIRN_VALUE_NONE) return std::nullopt;
  return value;
}

std::optional<std::int64_t> Metadata::integer(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  if (value->kind == CAIRN_VALUE_INT) return value->as.integer;
  // JSON writers turn 4096 into 4096.0 now and then.
  const auto real = number(*value);
  if (!real || *real != static_cast<double>(static_cast<std::int64_t>(*real))) wrong_kind(key, "an integer");
  return static_cast<std::int64_t>(*real);
}

std::optional<double> Metadata::real(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  const auto real = number(*value);
  if (!real) wrong_kind(key, "a number");
  return real;
}

std::optional<bool> Metadata::boolean(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  if (value->kind != CAIRN_VALUE_BOOL) wrong_kind(key, "true or false");
  return value->as.integer != 0;
}

std::optional<std::string> Metadata::string(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  if (value->kind != CAIRN_VALUE_STRING) wrong_kind(key, "a text");
  return std::string(cairn::text(value->as.string));
}

std::optional<std::vector<float>> Metadata::reals(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  if (value->kind != CAIRN_VALUE_LIST) wrong_kind(key, "a list of numbers");
  std::vector<float> result;
  for (std::uint64_t i = 0; i < value->as.list.count; ++i) {
    const auto real = number(value->as.list.data[i]);
    if (!real) wrong_kind(key, "a list of numbers");
    result.push_back(static_cast<float>(*real));
  }
  return result;
}

std::vector<std::int32_t> Metadata::ids(std::string_view key) const {
  const auto value = find(key);
  if (!value) return {};
  const cairn_value* first = &*value;
  std::uint64_t count = 1;
  if (value->kind == CAIRN_VALUE_LIST) {
    first = value->as.list.data;
    count = value->as.list.count;
  }
  std::vector<std::int32_t> result;
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool valid = first[i].kind == CAIRN_VALUE_INT && first[i].as.integer >= 0 &&
                       first[i].as.integer <= std::numeric_limits<std::int32_t>::max();
    if (!valid) wrong_kind(key, "a token id or a list of token ids");
    result.push_back(static_cast<std::int32_t>(first[i].as.integer));
  }
  return result;
}

std::int64_t Metadata::required_integer(std::string_view key, std::int64_t minimum, std::int64_t maximum) const {
  const auto value = integer(key);
  if (!value) throw cairn::data_loss("the weights' metadata has no key '" + std::string(key) + "'");
  if (*value < minimum || *value > maximum) {
    throw cairn::data_loss("the weights' metadata key '" + std::string(key) + "' is " + std::to_string(*value) +
                           ", which is not between " + std::to_string(minimum) + " and " + std::to_string(maximum));
  }
  return *value;
}

}  // namespace llama
