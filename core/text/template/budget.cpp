// The limits' slow paths: looking at the clock and the errors that name a limit.
#include "core/text/template/budget.hpp"

#include <string>

namespace cairn::tmpl {
namespace {

thread_local Budget* current_budget = nullptr;

}  // namespace

Budget::Budget(const RenderLimits& limits)
    : limits_(limits), deadline_(std::chrono::steady_clock::now() + limits.time), outer_(current_budget) {
  current_budget = this;
}

Budget::~Budget() {
  current_budget = outer_;
}

Budget* Budget::current() noexcept {
  return current_budget;
}

Budget::Uncounted::Uncounted() : paused_(current_budget) {
  current_budget = nullptr;
}

Budget::Uncounted::~Uncounted() {
  current_budget = paused_;
}

void Budget::check_room(size_t bytes) const {
  if (bytes > limits_.memory_bytes || live_bytes_ > limits_.memory_bytes - bytes) fail_memory();
}

void Budget::look_at_clock() {
  pending_ = 0;
  if (std::chrono::steady_clock::now() > deadline_) {
    throw RenderError("the template ran longer than its limit of " + std::to_string(limits_.time.count()) + " ms");
  }
}

void Budget::fail_steps() const {
  throw RenderError("the template took more than its limit of " + std::to_string(limits_.steps) + " steps");
}

void Budget::fail_memory() const {
  throw RenderError("the template needs more than its limit of " + std::to_string(limits_.memory_bytes) +
                    " bytes of memory");
}

void Budget::fail_output() const {
  throw RenderError("the template's output is larger than its limit of " + std::to_string(limits_.output_bytes) +
                    " bytes");
}

void Budget::fail_depth() const {
  throw RenderError("the template nests calls and expressions deeper than its limit of " +
                    std::to_string(limits_.depth) + " levels");
}

}  // namespace cairn::tmpl
