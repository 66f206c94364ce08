// A chat template: Jinja source from a model file, compiled once and rendered for each conversation.
// Used by the host's chat endpoints and by `cairn template`. Behaves as Jinja2 3.1 does in the sandbox that Hugging
// Face transformers sets up (trim_blocks, lstrip_blocks, loop controls, {% generation %}, tojson, raise_exception,
// strftime_now).
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cairn {

// What one render may use. A render that goes past any of these throws InvalidArgument naming the limit.
struct RenderLimits {
  std::chrono::milliseconds time{1000};
  size_t output_bytes = size_t{8} << 20;
  // Bytes of strings, lists and dicts that the template holds at one moment, the input conversation not counted.
  size_t memory_bytes = size_t{128} << 20;
  // Expressions and statements evaluated.
  size_t steps = 20'000'000;
  // Nested evaluations: macro calls, recursive loops and expressions together. One level takes at most about 1 KiB of
  // thread stack (4 KiB under a sanitizer).
  int depth = 600;
};

struct RenderOptions {
  std::string bos_token;
  std::string eos_token;
  bool add_generation_prompt = true;
  // Seconds since the epoch that strftime_now formats, as UTC; the system clock when absent.
  std::optional<int64_t> now_unix;
  // Further variables the template sees (a request's chat_template_kwargs: enable_thinking, documents, date_string...).
  // They win over the variables that this structure sets, but not over messages and tools.
  boost::json::object extra;
  RenderLimits limits;
};

// How a template wants the content of a message: as text, or as a list of typed parts ({"type": "text", "text": ...}).
enum class ContentFormat { kText, kParts };

// Immutable after construction; every member function may be called from any number of threads at once.
class ChatTemplate {
 public:
  // Throws BadFile with the name, line, column and the offending line when the source is not a template this engine
  // runs.
  explicit ChatTemplate(std::string_view source, std::string name = "default");
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // The prompt for `messages`. `tools` may be null, which the template sees as none. Messages are passed on as they
  // are: see normalize_messages for what a caller may want to do first. Throws InvalidArgument: for raise_exception
  // with exactly the template's message, for any other error with the template's name and line.
  std::string render(const boost::json::array& messages, const boost::json::array* tools,
                     const RenderOptions& options) const;

  // Renders with exactly the given variables (and the functions every template has). For tools and tests.
  std::string render_value(const boost::json::object& variables, const RenderOptions& options = {}) const;

  const std::string& name() const noexcept;
  const std::string& source() const noexcept;

  // Whether the source mentions the variable: `tools` (in any spelling that reads it), or any other name.
  bool uses_variable(std::string_view variable) const;
  bool uses_tools() const { return uses_variable("tools"); }

  // Found once at construction by rendering two one-message conversations: a template that prints text parts properly,
  // and does so differently from printing the list itself, wants parts.
  ContentFormat content_format() const noexcept;
  bool wants_typed_content() const noexcept { return content_format() == ContentFormat::kParts; }

 private:
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

// A copy of OpenAI-style messages in the form that `format` and published templates expect:
//  * content that is a list of text parts becomes their texts joined by "\n" for kText; a string becomes one text part
//    for kParts when some other message of the conversation has parts (templates then need not handle both);
//  * tool_calls[].function.arguments given as a string of JSON becomes the object it holds (a string that is not a JSON
//    object stays as it is).
// Everything else is passed through. Throws InvalidArgument when kText meets a part that is not text.
boost::json::array normalize_messages(const boost::json::array& messages, ContentFormat format);

}  // namespace cairn
