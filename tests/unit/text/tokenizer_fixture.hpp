// Reads the reference data that tests/tools/tokenizer_reference.py wrote (the format is described there).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::test {

inline std::filesystem::path tokenizer_data() {
  return CAIRN_TOKENIZER_DATA;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The names of all reference tokenizers.
inline std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(tokenizer_data())) {
    if (entry.path().extension() == ".cases") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// tokenizer.json with its model put back in.
inline boost::json::value fixture_document(const std::string& name) {
  boost::json::value document = boost::json::parse(read_file(tokenizer_data() / (name + ".json")));
  const std::string model(document.at("model").as_string());
  const std::size_t space = model.find(' ');
  boost::json::value body = boost::json::parse(read_file(tokenizer_data() / (model.substr(0, space) + ".json")));
  if (space != std::string::npos) body.as_object()["ignore_merges"] = true;
  document.as_object()["model"] = std::move(body);
  return document;
}

struct ReferenceCase {
  bool add_special;
  bool parse_special;
  std::string text;
  std::vector<std::int32_t> ids;
  std::uint64_t decoded;          // FNV-1a, special tokens included
  std::uint64_t decoded_skipped;  // without them
};

inline std::vector<std::string> fixture_strings() {
  const std::string data = read_file(tokenizer_data() / "strings.bin");
  std::vector<std::string> strings;
  for (std::size_t pos = 0; pos < data.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, &data.at(pos), 4);
    strings.push_back(data.substr(pos + 4, length));
    pos += 4 + length;
  }
  return strings;
}

inline std::vector<ReferenceCase> fixture_cases(const std::string& name) {
  const std::vector<std::string> strings = fixture_strings();
  const std::string data = read_file(tokenizer_data() / (name + ".cases"));
  std::vector<ReferenceCase> cases;
  std::size_t pos = 0;
  const auto take = [&](auto& value) {
    std::memcpy(&value, &data.at(pos), sizeof value);
    pos += sizeof value;
  };
  while (pos < data.size()) {
    std::uint8_t flags = 0;
    std::uint16_t index = 0;
    std::uint16_t count = 0;
    take(flags);
    take(index);
    take(count);
    ReferenceCase c{(flags & 1) != 0, (flags & 2) == 0, strings.at(index), {}, 0, 0};
    for (std::uint16_t i = 0; i < count; ++i) {
      std::uint16_t id = 0;
      take(id);
      c.ids.push_back(id);
    }
    take(c.decoded);
    take(c.decoded_skipped);
    cases.push_back(std::move(c));
  }
  return cases;
}

inline std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t value = 0xCBF29CE484222325ULL;
  for (const char c : bytes) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return value;
}

}  // namespace cairn::test
