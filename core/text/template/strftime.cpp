// One directive at a time through the C library, except those that Python treats in its own way.
#include "core/text/template/strftime.hpp"

#include <array>
#include <ctime>

#include "core/text/template/budget.hpp"

namespace cairn::tmpl {
namespace {

constexpr int64_t kFirstSecond = -62135596800;  // 0001-01-01
constexpr int64_t kLastSecond = 253402300799;   // 9999-12-31 23:59:59

}  // namespace

std::string format_time(std::string_view format, int64_t unix_seconds) {
  if (unix_seconds < kFirstSecond || unix_seconds > kLastSecond) {
    throw RenderError("the time " + std::to_string(unix_seconds) + " is not within the years 1 to 9999");
  }
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm time{};
  gmtime_r(&seconds, &time);
  std::string out;
  charge_work(format.size());
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    std::string directive = "%";
    char letter = format[++i];
    // glibc's flags, which Python passes through: %-d, %_d, %^a, %#Z, %0d.
    while (i + 1 < format.size() && directive.size() < 4 &&
           std::string_view("-_^#0").find(letter) != std::string_view::npos) {
      directive += letter;
      letter = format[++i];
    }
    directive += letter;
    if (letter == 'f') {
      out += "000000";
    } else if (letter == 's') {
      out += std::to_string(unix_seconds);
    } else if (letter != 'z' && letter != 'Z') {  // a time without a zone prints nothing for them
      check_room(out.size());
      std::array<char, 128> buffer;
      out.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), directive.c_str(), &time));
    }
  }
  return out;
}

}  // namespace cairn::tmpl
