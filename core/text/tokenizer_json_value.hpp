// Reads a parsed JSON file with its place in every message. Used by the tokenizer.json loader.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace cairn {

// A value and where it lies, e.g. "tokenizer.json: model.merges[3]". The value outlives this.
class JsonPlace {
 public:
  JsonPlace(const boost::json::value* value, std::string path) : value_(value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const boost::json::value& value() const { return *value_; }
  bool is_null() const { return value_ == nullptr || value_->is_null(); }
  explicit operator bool() const { return !is_null(); }

  // The member `key`; a null place when it is absent. Throws BadFile when this is no object.
  JsonPlace get(std::string_view key) const {
    const std::string path = path_ + "." + std::string(key);
    if (value_ == nullptr || !value_->is_object()) fail("is not an object");
    return {value_->as_object().if_contains(key), path};
  }
  JsonPlace need(std::string_view key) const {
    JsonPlace found = get(key);
    if (found.value_ == nullptr) found.fail("is missing");
    return found;
  }

  const boost::json::array& array() const {
    if (value_ == nullptr || !value_->is_array()) fail("is not a list");
    return value_->as_array();
  }
  JsonPlace item(std::size_t i) const { return {&array()[i], path_ + "[" + std::to_string(i) + "]"}; }
  const boost::json::object& object() const {
    if (value_ == nullptr || !value_->is_object()) fail("is not an object");
    return value_->as_object();
  }
  std::string_view string() const {
    if (value_ == nullptr || !value_->is_string()) fail("is not a string");
    return value_->as_string();
  }
  std::int64_t integer() const {
    if (value_ != nullptr && value_->is_int64()) return value_->as_int64();
    if (value_ != nullptr && value_->is_uint64()) fail("is " + std::to_string(value_->as_uint64()) + ", out of range");
    fail("is not an integer");
  }
  double number() const {
    if (value_ != nullptr && value_->is_double()) return value_->as_double();
    return static_cast<double>(integer());
  }

  // Absent or null: `fallback`.
  bool boolean(std::string_view key, bool fallback) const {
    const JsonPlace found = get(key);
    if (!found) return fallback;
    if (!found.value_->is_bool()) found.fail("is neither true nor false");
    return found.value_->as_bool();
  }
  std::string string(std::string_view key, std::string_view fallback) const {
    const JsonPlace found = get(key);
    return std::string(found ? found.string() : fallback);
  }

  [[noreturn]] void fail(const std::string& what) const { throw BadFile(path_ + " " + what + "."); }

 private:
  const boost::json::value* value_;
  std::string path_;
};

}  // namespace cairn
