// libFuzzer target: any bytes as a chat template, loaded and rendered over a conversation with tools. Seeds:
// corpus/chat_template.
#include <boost/json/parse.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/error.hpp"
#include "core/text/template/chat_template.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const boost::json::array messages =
      boost::json::parse(R"([{"role":"system","content":"Be nice."},{"role":"user","content":"Hé 日"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":[1,2.5,true]}}}]},
        {"role":"tool","content":[{"type":"text","text":"t"}]}])")
          .as_array();
  static const boost::json::array tools =
      boost::json::parse(R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])").as_array();
  cairn::RenderOptions options;
  options.now_unix = 0;
  options.limits.time = std::chrono::milliseconds(200);
  options.limits.memory_bytes = size_t{16} << 20;
  options.limits.steps = 200'000;
  try {
    const cairn::ChatTemplate compiled(std::string_view(reinterpret_cast<const char*>(data), size));
    compiled.render(messages, &tools, options);
  } catch (const cairn::BadFile&) {
  } catch (const cairn::InvalidArgument&) {
  }
  return 0;
}
