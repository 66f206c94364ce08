// "cairn.tokenizer" and "cairn.chat_template" over core/text.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstring>

#include "core/base/error.hpp"
#include "core/plugin/abi_value.hpp"
#include "core/plugin/open_weights.hpp"
#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

namespace {

const OpenWeights& opened(const cairn_weights* weights) {
  if (weights == nullptr) throw InvalidArgument("weights is NULL; the deployment names no weights file");
  return *OpenWeights::from_handle(weights);
}

const Tokenizer& tokenizer_of(const cairn_tokenizer* handle) {
  if (handle == nullptr) throw InvalidArgument("tokenizer is NULL");
  return *reinterpret_cast<const Tokenizer*>(handle);
}

// Memory of the plugin's call.
void* from_arena(cairn_arena* arena, std::uint64_t size, std::uint64_t alignment) {
  if (!CAIRN_HAS(arena, cairn_arena, alloc) || arena->alloc == nullptr) throw InvalidArgument("arena is NULL");
  void* memory = arena->alloc(arena, size, alignment);
  if (memory == nullptr) throw ResourceExhausted(fmt::format("the arena has no room for {} bytes", size));
  return memory;
}

cairn_str copy_text(cairn_arena* arena, std::string_view text) {
  auto* data = static_cast<char*>(from_arena(arena, text.size(), 1));
  std::memcpy(data, text.data(), text.size());
  return {data, text.size()};
}

cairn_status get_tokenizer(const cairn_weights* weights, const cairn_tokenizer** out_borrowed) {
  return guard("tokenizer.get", [&] {
    if (out_borrowed == nullptr) throw InvalidArgument("out_borrowed is NULL");
    *out_borrowed = reinterpret_cast<const cairn_tokenizer*>(opened(weights).tokenizer().get());
  });
}

cairn_status encode(const cairn_tokenizer* tokenizer, cairn_str text, std::uint32_t add_special, cairn_arena* arena,
                    cairn_i32_span* out) {
  return guard("tokenizer.encode", [&] {
    if (out == nullptr) throw InvalidArgument("out is NULL");
    const auto ids = tokenizer_of(tokenizer).encode(from_abi_str(text), {.add_special = add_special != 0});
    auto* data =
        static_cast<std::int32_t*>(from_arena(arena, ids.size() * sizeof(std::int32_t), alignof(std::int32_t)));
    if (!ids.empty()) std::memcpy(data, ids.data(), ids.size() * sizeof(std::int32_t));
    *out = {data, ids.size()};
  });
}

cairn_status decode(const cairn_tokenizer* tokenizer, cairn_i32_span ids, std::uint32_t skip_special,
                    cairn_arena* arena, cairn_str* out) {
  return guard("tokenizer.decode", [&] {
    if (out == nullptr || (ids.data == nullptr && ids.count != 0)) throw InvalidArgument("out or ids is NULL");
    *out = copy_text(arena, tokenizer_of(tokenizer).decode({ids.data, ids.count}, skip_special != 0));
  });
}

std::int32_t token_id(const cairn_tokenizer* tokenizer, cairn_str spelling) {
  std::int32_t id = -1;
  (void)guard("tokenizer.token_id",
              [&] { id = tokenizer_of(tokenizer).token_id(from_abi_str(spelling)).value_or(-1); });
  return id;
}

boost::json::value json_of(const cairn_value& value, int depth);

boost::json::object json_object(const cairn_map& map, int depth) {
  if (map.data == nullptr && map.count != 0) throw InvalidArgument("a map has entries but its data is NULL");
  boost::json::object object;
  for (std::uint64_t i = 0; i < map.count; ++i) {
    object[from_abi_str(map.data[i].key)] = json_of(map.data[i].value, depth + 1);
  }
  return object;
}

boost::json::array json_array(const cairn_list& list, int depth) {
  if (list.data == nullptr && list.count != 0) throw InvalidArgument("a list has elements but its data is NULL");
  boost::json::array array;
  for (std::uint64_t i = 0; i < list.count; ++i) array.push_back(json_of(list.data[i], depth + 1));
  return array;
}

boost::json::value json_of(const cairn_value& value, int depth) {
  if (depth > kMaxAbiValueDepth) {
    throw InvalidArgument(fmt::format("a value nests deeper than {} lists and maps", kMaxAbiValueDepth));
  }
  switch (value.kind) {
    case CAIRN_VALUE_BOOL:
      return value.as.integer != 0;
    case CAIRN_VALUE_INT:
      return value.as.integer;
    case CAIRN_VALUE_FLOAT:
      if (!std::isfinite(value.as.real)) throw InvalidArgument("a number is not finite");
      return value.as.real;
    case CAIRN_VALUE_STRING:
      return boost::json::value(from_abi_str(value.as.string));
    case CAIRN_VALUE_LIST:
      return json_array(value.as.list, depth);
    case CAIRN_VALUE_MAP:
      return json_object(value.as.map, depth);
    case CAIRN_VALUE_BYTES:
    case CAIRN_VALUE_TENSOR:
    case CAIRN_VALUE_OPAQUE:
      throw InvalidArgument("bytes, tensors and opaque objects have no place in a chat template");
    default:
      return nullptr;
  }
}

cairn_status get_template(const cairn_weights* weights, const cairn_chat_template** out_borrowed) {
  return guard("chat_template.get", [&] {
    if (out_borrowed == nullptr) throw InvalidArgument("out_borrowed is NULL");
    // The weights themselves are the handle: rendering also needs the tokenizer's BOS and EOS.
    const OpenWeights& source = opened(weights);
    (void)source.chat_template();
    *out_borrowed = reinterpret_cast<const cairn_chat_template*>(&source);
  });
}

cairn_status render(const cairn_chat_template* handle, const cairn_value* messages, const cairn_value* tools,
                    std::uint32_t add_generation_prompt, const cairn_map* kwargs, cairn_arena* arena, cairn_str* out) {
  return guard("chat_template.render", [&] {
    if (handle == nullptr || out == nullptr) throw InvalidArgument("chat_template or out is NULL");
    if (messages == nullptr || messages->kind != CAIRN_VALUE_LIST) throw InvalidArgument("messages is not a list");
    const bool has_tools = tools != nullptr && tools->kind != CAIRN_VALUE_NONE;
    if (has_tools && tools->kind != CAIRN_VALUE_LIST) throw InvalidArgument("tools is neither a list nor none");
    const auto& weights = *reinterpret_cast<const OpenWeights*>(handle);
    const auto chat_template = weights.chat_template();
    RenderOptions options;
    options.bos_token = weights.bos_text();
    options.eos_token = weights.eos_text();
    options.add_generation_prompt = add_generation_prompt != 0;
    if (kwargs != nullptr) options.extra = json_object(*kwargs, 0);
    const boost::json::array tool_list = has_tools ? json_array(tools->as.list, 0) : boost::json::array();
    const boost::json::array conversation =
        normalize_messages(json_array(messages->as.list, 0), chat_template->content_format());
    *out = copy_text(arena, chat_template->render(conversation, has_tools ? &tool_list : nullptr, options));
  });
}

}  // namespace

const cairn_tokenizer_service kTokenizerService = {
    .struct_size = sizeof(cairn_tokenizer_service),
    .get = get_tokenizer,
    .encode = encode,
    .decode = decode,
    .vocab_size = [](const cairn_tokenizer* tokenizer) -> std::int32_t {
      return tokenizer == nullptr ? 0 : reinterpret_cast<const Tokenizer*>(tokenizer)->vocab_size();
    },
    .token_id = token_id,
    .end_tokens = [](const cairn_tokenizer* tokenizer) -> cairn_i32_span {
      if (tokenizer == nullptr) return {};
      const auto& ids = reinterpret_cast<const Tokenizer*>(tokenizer)->end_token_ids();
      return {ids.data(), ids.size()};
    },
};

const cairn_chat_template_service kChatTemplateService = {
    .struct_size = sizeof(cairn_chat_template_service),
    .get = get_template,
    .render = render,
};

}  // namespace cairn
