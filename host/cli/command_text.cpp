// cairn tokenize, detokenize, template: text in, text out, no model is run.
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <ctime>
#include <iostream>

#include "core/base/error.hpp"
#include "core/plugin/open_weights.hpp"
#include "host/cli/commands.hpp"
#include "host/cli/text_input.hpp"
#include "host/openai/json_writer.hpp"

namespace cairn {
namespace {

namespace json = boost::json;

json::value parse_json(const std::string& text, const std::string& name) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 256;
  json::value value = json::parse(text, error, {}, options);
  if (error) throw BadFile(name + " is not valid JSON.");
  return value;
}

json::array read_array(const std::filesystem::path& path, const char* key) {
  json::value value = parse_json(read_text_file(path), path.string());
  if (value.is_object() && value.get_object().contains(key)) value = json::value(value.get_object().at(key));
  if (!value.is_array())
    throw BadFile(path.string() + " must hold a JSON array, or an object with the array '" + key + "'.");
  return std::move(value.get_array());
}

// Seconds since the epoch, or a date and time as UTC: "2024-07-26", "2024-07-26T12:30:00".
std::int64_t parse_time(const std::string& text) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 18) {
    return std::stoll(text);
  }
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    std::tm parts{};
    const char* end = strptime(text.c_str(), format, &parts);
    if (end != nullptr && (*end == '\0' || (*end == 'Z' && end[1] == '\0'))) return timegm(&parts);
  }
  throw InvalidArgument(
      "--now must be seconds since the epoch or a UTC time like 2024-07-26T12:30:00; '" + text + "' is neither.",
      "now");
}

}  // namespace

int run_tokenize(const TokenizeOptions& options) {
  const auto tokenizer = Tokenizer::from_weights(*WeightsFile::open(options.model));
  const auto ids = tokenizer->encode(read_standard_input(), {.add_special = !options.no_special});
  std::string out;
  JsonWriter writer(out);
  writer.begin_array();
  for (const auto id : ids) writer.integer(id);
  writer.end_array();
  std::cout << out << '\n';
  return std::cout.flush() ? 0 : 1;
}

int run_detokenize(const DetokenizeOptions& options) {
  const auto tokenizer = Tokenizer::from_weights(*WeightsFile::open(options.model));
  const json::value input = parse_json(read_standard_input(), "Standard input");
  if (!input.is_array()) throw BadFile("Standard input must hold a JSON array of token ids.");
  std::vector<std::int32_t> ids;
  for (const auto& item : input.get_array()) {
    if (!item.is_int64() || item.get_int64() < 0 || item.get_int64() >= tokenizer->vocab_size()) {
      throw BadFile("The token ids on standard input must be integers from 0 to " +
                    std::to_string(tokenizer->vocab_size() - 1) + ".");
    }
    ids.push_back(static_cast<std::int32_t>(item.get_int64()));
  }
  std::cout << tokenizer->decode(ids, options.skip_special);
  return std::cout.flush() ? 0 : 1;
}

int run_template(const TemplateOptions& options) {
  RenderOptions render;
  std::string source;
  std::string name = "default";
  if (!options.model.empty()) {
    const auto weights = OpenWeights::open(options.model);
    const auto carried = weights->chat_template_source();
    if (!carried) throw BadFile(options.model.string() + " carries no chat template.");
    source = *carried;
    name = options.model.filename().string();
    render.bos_token = weights->bos_text();
    render.eos_token = weights->eos_text();
  } else {
    source = read_text_file(options.template_file);
    name = options.template_file.filename().string();
  }
  if (options.bos) render.bos_token = *options.bos;
  if (options.eos) render.eos_token = *options.eos;
  if (!options.now.empty()) render.now_unix = parse_time(options.now);
  render.add_generation_prompt = !options.no_generation_prompt;
  const json::array messages = read_array(options.messages, "messages");
  std::optional<json::array> tools;
  if (!options.tools.empty()) tools = read_array(options.tools, "tools");
  std::cout << ChatTemplate(source, name).render(messages, tools ? &*tools : nullptr, render);
  return std::cout.flush() ? 0 : 1;
}

}  // namespace cairn
