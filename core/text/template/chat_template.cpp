// Compiles a template, sets up the variables of a render and turns the engine's errors into the host's.
#include "core/text/template/chat_template.hpp"

#include <algorithm>
#include <ctime>

#include "core/base/error.hpp"
#include "core/text/template/budget.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/json_value.hpp"
#include "core/text/template/lexer.hpp"
#include "core/text/template/parser.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn {
namespace {

constexpr size_t kMaxSourceBytes = size_t{4} << 20;
constexpr size_t kMaxShownLine = 160;

std::string describe_syntax_error(std::string_view source, const std::string& name, const tmpl::SyntaxError& error) {
  const size_t offset = std::min(error.offset, source.size());
  const std::string_view before = source.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  std::string_view shown = source.substr(start, source.find('\n', start) - start);
  // A long line is shown around the error only.
  const size_t skipped = offset - start > kMaxShownLine / 2 ? offset - start - kMaxShownLine / 2 : 0;
  shown =
      shown.substr(std::min(tmpl::byte_offset(shown, tmpl::count_characters(shown.substr(0, skipped))), shown.size()));
  shown = shown.substr(0, tmpl::byte_offset(shown, kMaxShownLine));
  return "chat template '" + name + "', line " + std::to_string(line) + ", column " +
         std::to_string(tmpl::count_characters(before.substr(start)) + 1) + ": " + error.what() +
         ", in: " + std::string(shown);
}

}  // namespace

struct ChatTemplate::Compiled {
  std::string name;
  std::string source;  // normalized
  tmpl::Program program;
  ContentFormat content_format = ContentFormat::kText;

  std::string run(const tmpl::Interpreter::Lookup& lookup, const RenderOptions& options) const {
    tmpl::Budget budget(options.limits);
    const int64_t now = options.now_unix ? *options.now_unix : static_cast<int64_t>(std::time(nullptr));
    tmpl::Interpreter interpreter(program, budget, lookup, now);
    try {
      return interpreter.run();
    } catch (const tmpl::RenderError& error) {
      if (error.verbatim()) throw InvalidArgument(error.what());
      throw InvalidArgument("chat template '" + name + "', line " + std::to_string(interpreter.line()) + ": " +
                            error.what());
    }
  }

  std::string render(const boost::json::array& messages, const boost::json::array* tools,
                     const RenderOptions& options) const {
    auto lookup = [&](const std::string& variable) -> std::optional<tmpl::Value> {
      if (variable == "messages") return tmpl::from_json(messages);
      if (variable == "tools") return tools ? tmpl::from_json(*tools) : tmpl::Value();
      if (const boost::json::value* given = options.extra.if_contains(variable)) return tmpl::from_json(*given);
      if (variable == "documents") return tmpl::Value();
      if (variable == "add_generation_prompt") return tmpl::Value(options.add_generation_prompt);
      if (variable == "bos_token") return tmpl::from_json(boost::json::string(options.bos_token));
      if (variable == "eos_token") return tmpl::from_json(boost::json::string(options.eos_token));
      return std::nullopt;
    };
    return run(lookup, options);
  }
};

namespace {

// The prompt for one message with this content, or nothing when the template refuses it.
template <class Compiled>
std::optional<std::string> probe(const Compiled& compiled, boost::json::value content) {
  boost::json::array messages;
  messages.push_back(boost::json::object{{"role", "user"}, {"content", std::move(content)}});
  RenderOptions options;
  options.limits.time = std::chrono::milliseconds(100);
  options.now_unix = 0;
  try {
    return compiled.render(messages, nullptr, options);
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

// Whether the template picks the text out of a typed part. A template for plain text fails on a list, prints it as
// Python or JSON would, or leaves it out; one that handles both gives the same prompt for both forms, and text is then
// simpler.
template <class Compiled>
ContentFormat find_content_format(const Compiled& compiled) {
  const std::string marker = "cairn-probe-text";
  const auto from_text = probe(compiled, boost::json::string(marker));
  if (from_text && from_text->find(marker) != std::string::npos) return ContentFormat::kText;
  const boost::json::object part{{"type", "text"}, {"text", marker}};
  const auto from_parts = probe(compiled, boost::json::array{part});
  const bool picks_text = from_parts && from_parts->find(marker) != std::string::npos &&
                          from_parts->find("'" + marker + "'") == std::string::npos &&
                          from_parts->find("\"" + marker + "\"") == std::string::npos;
  return picks_text ? ContentFormat::kParts : ContentFormat::kText;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string name) {
  if (source.size() > kMaxSourceBytes) {
    throw BadFile("chat template '" + name + "' has " + std::to_string(source.size()) + " bytes; at most " +
                  std::to_string(kMaxSourceBytes) + " are accepted");
  }
  if (!tmpl::is_valid_utf8(source)) throw BadFile("chat template '" + name + "' is not valid UTF-8");
  auto compiled = std::make_unique<Compiled>();
  compiled->name = std::move(name);
  compiled->source = tmpl::normalize_source(source);
  try {
    compiled->program = tmpl::Parser(tmpl::tokenize(compiled->source)).parse();
  } catch (const tmpl::SyntaxError& error) {
    throw BadFile(describe_syntax_error(compiled->source, compiled->name, error));
  }
  compiled->content_format = find_content_format(*compiled);
  compiled_ = std::move(compiled);
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const boost::json::array& messages, const boost::json::array* tools,
                                 const RenderOptions& options) const {
  return compiled_->render(messages, tools, options);
}

std::string ChatTemplate::render_value(const boost::json::object& variables, const RenderOptions& options) const {
  auto lookup = [&](const std::string& variable) -> std::optional<tmpl::Value> {
    const boost::json::value* given = variables.if_contains(variable);
    return given ? std::optional<tmpl::Value>(tmpl::from_json(*given)) : std::nullopt;
  };
  return compiled_->run(lookup, options);
}

const std::string& ChatTemplate::name() const noexcept {
  return compiled_->name;
}
const std::string& ChatTemplate::source() const noexcept {
  return compiled_->source;
}

bool ChatTemplate::uses_variable(std::string_view variable) const {
  const std::vector<std::string>& names = compiled_->program.names;
  const auto found = std::find(names.begin(), names.end(), variable);
  return found != names.end() && compiled_->program.is_read[static_cast<size_t>(found - names.begin())];
}

ContentFormat ChatTemplate::content_format() const noexcept {
  return compiled_->content_format;
}

}  // namespace cairn
