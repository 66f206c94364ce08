#include "host/cli/text_input.hpp"

#include <array>
#include <fstream>
#include <iostream>

#include "core/base/error.hpp"

namespace cairn {
namespace {

constexpr std::size_t kMaxText = std::size_t{64} << 20;

std::string read_all(std::istream& stream, const std::string& name) {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (stream.read(buffer.data(), buffer.size()), stream.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxText) {
      throw BadFile(name + " has more than " + std::to_string(kMaxText) + " bytes, which is the limit.");
    }
  }
  return text;
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream || std::filesystem::is_directory(path)) throw NotFound("Cannot read the file " + path.string() + ".");
  return read_all(stream, path.string());
}

std::string read_standard_input() {
  return read_all(std::cin, "Standard input");
}

}  // namespace cairn
