// Brings OpenAI-style messages into the form that published templates expect.
#include <boost/json/parse.hpp>

#include "core/base/error.hpp"
#include "core/text/template/chat_template.hpp"

namespace cairn {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

bool has_parts(const array& messages) {
  for (const value& message : messages) {
    const object* fields = message.if_object();
    const value* content = fields ? fields->if_contains("content") : nullptr;
    if (content && content->is_array()) return true;
  }
  return false;
}

// The texts of a message's parts on lines of their own.
boost::json::string join_text_parts(const array& parts, size_t message_index) {
  boost::json::string joined;
  bool first = true;
  for (const value& part : parts) {
    const object* fields = part.if_object();
    const value* type = fields ? fields->if_contains("type") : nullptr;
    const value* text = fields ? fields->if_contains("text") : nullptr;
    const bool is_text = text && text->is_string() && (!type || (type->is_string() && type->get_string() == "text"));
    if (!is_text) {
      const std::string what = type && type->is_string() ? std::string(type->get_string()) : "unknown";
      throw InvalidArgument("message " + std::to_string(message_index) + " has a content part of type '" + what +
                                "', but this model's chat template takes text only",
                            "messages");
    }
    if (!first) joined += "\n";
    first = false;
    joined += text->get_string();
  }
  return joined;
}

void normalize_content(value& content, ContentFormat format, bool conversation_has_parts, size_t message_index) {
  if (format == ContentFormat::kText && content.is_array()) {
    content = join_text_parts(content.get_array(), message_index);
  } else if (format == ContentFormat::kParts && content.is_string() && conversation_has_parts) {
    const boost::json::string text = content.get_string();
    content = array{object{{"type", "text"}, {"text", text}}};
  }
}

void normalize_tool_calls(value& calls) {
  if (!calls.is_array()) return;
  for (value& call : calls.get_array()) {
    object* fields = call.if_object();
    value* function = fields ? fields->if_contains("function") : nullptr;
    object* described = function ? function->if_object() : nullptr;
    value* arguments = described ? described->if_contains("arguments") : nullptr;
    if (!arguments || !arguments->is_string()) continue;
    boost::json::error_code error;
    value parsed = boost::json::parse(arguments->get_string(), error);
    if (!error && parsed.is_object()) *arguments = std::move(parsed);
  }
}

}  // namespace

boost::json::array normalize_messages(const boost::json::array& messages, ContentFormat format) {
  const bool conversation_has_parts = has_parts(messages);
  array normalized(messages);
  for (size_t i = 0; i < normalized.size(); ++i) {
    object* message = normalized[i].if_object();
    if (!message) continue;
    if (value* content = message->if_contains("content")) {
      normalize_content(*content, format, conversation_has_parts, i);
    }
    if (value* calls = message->if_contains("tool_calls")) normalize_tool_calls(*calls);
  }
  return normalized;
}

}  // namespace cairn
