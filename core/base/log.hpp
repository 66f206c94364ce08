// Structured logging on spdlog, behind two functions so that the heavy header stays in one translation unit.
// Callers format with {fmt}-style std::string building of their own; messages are one line.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };

// Any thread. Never throws.
void log(LogLevel level, std::string_view component, std::string_view message) noexcept;
bool log_enabled(LogLevel level) noexcept;

// Called once from main: level by name ("trace" .. "error"), JSON lines or text on standard error.
// Throws InvalidArgument for an unknown level name.
void configure_logging(std::string_view level, bool json);

}  // namespace cairn
