// tokenizer_probe FILE enc|dec|time: encodes or decodes many strings with the tokenizer of a GGUF file or
// tokenizer.json, or measures the speed on standard input. Used by tokenizer_reference.py.
//
// Input records: u32 flags, u32 length, bytes. enc (flags bit 0: add special, bit 1: special tokens are plain text)
// prints a line of ids; dec (bytes are u32 ids, flags bit 0: skip special) writes u32 length and the text.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "core/text/tokenizer.hpp"
#include "core/weights/gguf.hpp"

namespace {

using cairn::Tokenizer;

std::shared_ptr<const Tokenizer> open(const std::string& path) {
  if (!path.ends_with(".json")) return Tokenizer::from_gguf(*cairn::GgufFile::open(path));
  std::ifstream in(path, std::ios::binary);
  return Tokenizer::from_json(std::string(std::istreambuf_iterator<char>(in), {}));
}

void encode(const Tokenizer& tokenizer, std::uint32_t flags, const std::string& text) {
  try {
    const auto ids = tokenizer.encode(text, {.add_special = (flags & 1) != 0, .parse_special = (flags & 2) == 0});
    for (const std::int32_t id : ids) std::printf("%d ", id);
    std::printf("\n");
  } catch (const std::exception& e) {
    std::printf("ERR %s\n", e.what());
  }
}

void decode(const Tokenizer& tokenizer, std::uint32_t flags, const std::string& bytes) {
  std::vector<std::int32_t> ids(bytes.size() / 4);
  std::memcpy(ids.data(), bytes.data(), ids.size() * 4);
  const std::string text = tokenizer.decode(ids, (flags & 1) != 0);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::fwrite(&length, sizeof length, 1, stdout);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void measure(const Tokenizer& tokenizer) {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t count = tokenizer.encode(text).size();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%zu bytes, %zu ids, %.3f s, %.2f MB/s\n", text.size(), count, took.count(),
                static_cast<double>(text.size()) / 1e6 / took.count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tokenizer_probe FILE enc|dec|time\n");
    return 2;
  }
  try {
    const auto tokenizer = open(argv[1]);
    const std::string mode = argv[2];
    if (mode == "time") {
      measure(*tokenizer);
      return 0;
    }
    std::uint32_t header[2];
    while (std::fread(header, sizeof header, 1, stdin) == 1) {
      std::string bytes(header[1], '\0');
      if (!bytes.empty() && std::fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size()) break;
      mode == "enc" ? encode(*tokenizer, header[0], bytes) : decode(*tokenizer, header[0], bytes);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
