#include "core/base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "core/base/error.hpp"

namespace cairn {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool g_json = false;  // set once by configure_logging before other threads start

void append_json_escaped(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created = std::make_shared<spdlog::logger>("cairn", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    created->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%-7l%$ %v");
    return created;
  }();
  return *instance;
}

}  // namespace

void log(LogLevel level, std::string_view component, std::string_view message) noexcept {
  try {
    const auto spd_level = to_spdlog(level);
    if (!logger().should_log(spd_level)) return;
    std::string line;
    if (g_json) {
      line = "\"component\":\"";
      append_json_escaped(line, component);
      line += "\",\"message\":\"";
      append_json_escaped(line, message);
      line += '"';
    } else {
      line.append(component).append(": ");
      for (const char c : message) line += (static_cast<unsigned char>(c) < 0x20) ? ' ' : c;  // one message, one line
    }
    logger().log(spd_level, spdlog::string_view_t(line.data(), line.size()));
  } catch (...) {  // logging must never take a request down
  }
}

bool log_enabled(LogLevel level) noexcept {
  return logger().should_log(to_spdlog(level));
}

void configure_logging(std::string_view level, bool json) {
  static constexpr std::string_view kNames[] = {"trace", "debug", "info", "warning", "error"};
  for (int i = 0; i < 5; ++i) {
    if (kNames[i] != level) continue;
    logger().set_level(to_spdlog(static_cast<LogLevel>(i)));
    g_json = json;
    if (json) logger().set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})");
    return;
  }
  throw InvalidArgument("Log level '" + std::string(level) + "' is not one of trace, debug, info, warning, error.",
                        "log-level");
}

}  // namespace cairn
