#include "host/cli/progress_bar.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace cairn {
namespace {

constexpr int kCells = 32;

}  // namespace

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && shown_percent_ >= 0) std::cerr << "\r\033[K" << std::flush;
}

void ProgressBar::show(double fraction) {
  if (!terminal_) return;
  const int percent = std::clamp(static_cast<int>(fraction * 100), 0, 100);
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  const int full = percent * kCells / 100;
  std::cerr << '\r' << label_ << " [" << std::string(static_cast<std::size_t>(full), '#')
            << std::string(static_cast<std::size_t>(kCells - full), ' ') << "] " << percent << " %\033[K" << std::flush;
}

}  // namespace cairn
