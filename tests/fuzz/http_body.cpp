// Bodies of the API as a hostile client sends them: parsed, validated, put through the template and tokenised. Only the
// exception types that become an answer may come out. The first byte chooses the endpoint.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/openai/answer_writer.hpp"
#include "host/openai/api_error.hpp"
#include "host/openai/field_reader.hpp"
#include "host/openai/service.hpp"
#include "tests/unit/host/fake_runtime.hpp"

namespace {

using namespace cairn;

const ServedModel& model() {
  static const ServedModel instance = testing::make_model(
      std::make_unique<testing::FakeRuntime>(testing::FakeRuntime::Options{.max_seq_len = 4096}),
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif "
      "%}\n"
      "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}<assistant>{% endif %}");
  return instance;
}

void answer(std::uint8_t endpoint, const boost::json::object& body) {
  switch (endpoint % 5) {
    case 0:
      parse_chat_request(body, model());
      break;
    case 1:
      parse_completion_request(body, model());
      break;
    case 2:
      answer_tokenize(body, model());
      break;
    case 3:
      answer_detokenize(body, model());
      break;
    default:
      answer_apply_template(body, model());
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    const auto body = parse_body({reinterpret_cast<const char*>(data + 1), size - 1});
    requested_model(body);
    answer(data[0], body);
  } catch (const std::exception& error) {
    const ApiError api = to_api_error(error);
    if (api.status() >= 500) __builtin_trap();  // a client must not be able to make it our fault
    error_json(api, "id");
  }
  return 0;
}
