// A line on the terminal that shows how far loading is. Draws nothing when standard error is no terminal.
#pragma once

#include <string>

namespace cairn {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();  // clears the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // From 0 to 1; redraws when the percentage changes.
  void show(double fraction);

 private:
  std::string label_;
  int shown_percent_ = -1;
  bool terminal_;
};

}  // namespace cairn
