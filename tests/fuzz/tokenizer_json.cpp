// Fuzzes the tokenizer.json loader, and encoding and decoding with what it accepts. Up to the last zero byte the input
// is the file, behind it the text; the ids are those of the text and some from the input itself.
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/text/incremental_decoder.hpp"
#include "core/text/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.rfind('\0');
  const std::string_view file = input.substr(0, cut);
  const std::string_view text =
      cut == std::string_view::npos ? std::string_view("Hello 123 w\u00f6rld\xFF") : input.substr(cut + 1);
  try {
    const auto tokenizer = cairn::Tokenizer::from_json(file);
    std::vector<std::int32_t> ids = tokenizer->encode(text);
    for (std::size_t i = 0; i < size && i < 16; ++i) ids.push_back(data[i]);
    cairn::IncrementalDecoder decoder(tokenizer);
    std::string streamed;
    for (const std::int32_t id : ids) decoder.push(id, streamed);
    decoder.flush(streamed);
    if (streamed != tokenizer->decode(ids)) __builtin_trap();
  } catch (const std::runtime_error&) {
    // The errors of core/base/error.hpp; anything else is a bug.
  }
  return 0;
}
