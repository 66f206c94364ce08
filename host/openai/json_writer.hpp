// Writes JSON text straight into a string: no tree, no exceptions. Used for every answer of the OpenAI API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// Text that is not UTF-8 becomes U+FFFD, one per maximal invalid sequence; numbers that are not finite become null.
// Commas are placed by the writer; the caller keeps objects and arrays balanced.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view text);
  JsonWriter& integer(std::int64_t value);
  JsonWriter& number(double value);
  JsonWriter& number(float value);  // as many digits as a float has
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  // JSON text made elsewhere.
  JsonWriter& raw(std::string_view json);

  JsonWriter& field(std::string_view name, std::string_view text) { return key(name).string(text); }
  JsonWriter& field(std::string_view name, const char* text) { return key(name).string(text); }
  JsonWriter& field(std::string_view name, std::int64_t value) { return key(name).integer(value); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  template <class T>
  JsonWriter& append_number(T value);
  void comma();

  std::string& out_;
  bool first_ = true;  // nothing precedes the next element in its object or array
};

// Appends `text` as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace cairn
