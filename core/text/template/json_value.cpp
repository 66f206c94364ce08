// One recursion over the JSON tree.
#include "core/text/template/json_value.hpp"

#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

Value text_value(std::string_view text) {
  if (!is_valid_utf8(text)) throw RenderError("the conversation holds text that is not valid UTF-8");
  return Value(text);
}

Value convert(const boost::json::value& json, int depth) {
  if (depth > kMaxValueDepth - 2) {
    throw RenderError("the conversation is nested deeper than " + std::to_string(kMaxValueDepth - 2) + " levels");
  }
  switch (json.kind()) {
    case boost::json::kind::null:
      return Value();
    case boost::json::kind::bool_:
      return Value(json.get_bool());
    case boost::json::kind::int64:
      return Value(json.get_int64());
    case boost::json::kind::uint64:
      if (json.get_uint64() > static_cast<uint64_t>(INT64_MAX)) {
        throw RenderError("the integer " + std::to_string(json.get_uint64()) + " is outside the range of 64 bits");
      }
      return Value(static_cast<int64_t>(json.get_uint64()));
    case boost::json::kind::double_:
      return Value(json.get_double());
    case boost::json::kind::string:
      return text_value(json.get_string());
    case boost::json::kind::array: {
      std::vector<Value> items;
      items.reserve(json.get_array().size());
      for (const boost::json::value& item : json.get_array()) items.push_back(convert(item, depth + 1));
      return Value::list(std::move(items));
    }
    case boost::json::kind::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& [key, item] : json.get_object()) dict->set(text_value(key), convert(item, depth + 1));
      return Value(std::move(dict));
    }
  }
  return Value();
}

}  // namespace

Value from_json(const boost::json::value& json) {
  const Budget::Uncounted uncounted;
  return convert(json, 0);
}

}  // namespace cairn::tmpl
