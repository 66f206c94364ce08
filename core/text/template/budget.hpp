// What one render has used so far of its RenderLimits, and the error every part of the engine throws.
// Used by every file of the template engine. One Budget per render, on the rendering thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "core/text/template/chat_template.hpp"

namespace cairn::tmpl {

// An error of the running template. The interpreter adds name and line and hands it to the caller as InvalidArgument.
class RenderError : public std::runtime_error {
 public:
  explicit RenderError(const std::string& message, bool verbatim = false)
      : std::runtime_error(message), verbatim_(verbatim) {}
  // True for raise_exception: the message goes to the client as the template wrote it.
  bool verbatim() const noexcept { return verbatim_; }

 private:
  bool verbatim_;
};

// Counts steps, time, depth and live memory. The constructor makes it the thread's current budget, so that values can
// charge themselves without every function passing it along.
class Budget {
 public:
  explicit Budget(const RenderLimits& limits);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Null while no render runs on this thread (a template being compiled, the input being converted).
  static Budget* current() noexcept;

  // One evaluation that touches about `units` bytes or items. Throws RenderError past the step or time limit.
  void work(size_t units = 1) {
    if (++steps_ > limits_.steps) fail_steps();
    pending_ += units + kUnitsPerStep;
    if (pending_ > kUnitsPerClockLook) look_at_clock();
  }
  // Throws when `bytes` more would not fit; nothing is counted yet. Called before a large allocation.
  void check_room(size_t bytes) const;
  void add_memory(size_t bytes) {
    if (bytes > limits_.memory_bytes || live_bytes_ > limits_.memory_bytes - bytes) fail_memory();
    live_bytes_ += bytes;
  }
  void release_memory(size_t bytes) noexcept { live_bytes_ -= bytes; }
  void check_output(size_t bytes) const {
    if (bytes > limits_.output_bytes) fail_output();
  }

  // While one lives, values made on this thread are not counted: the input conversation is not the template's doing.
  class Uncounted {
   public:
    Uncounted();
    ~Uncounted();
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;

   private:
    Budget* paused_;
  };

  // Held for the time of one nested evaluation.
  class Level {
   public:
    explicit Level(Budget& budget) : budget_(budget) {
      if (budget_.depth_ >= budget_.limits_.depth) budget_.fail_depth();
      ++budget_.depth_;
    }
    ~Level() { --budget_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Budget& budget_;
  };

 private:
  static constexpr size_t kUnitsPerStep = 64;
  static constexpr size_t kUnitsPerClockLook = size_t{1} << 16;

  void look_at_clock();
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_memory() const;
  [[noreturn]] void fail_output() const;
  [[noreturn]] void fail_depth() const;

  RenderLimits limits_;
  std::chrono::steady_clock::time_point deadline_;
  size_t steps_ = 0;
  size_t pending_ = 0;
  size_t live_bytes_ = 0;
  int depth_ = 0;
  Budget* outer_;
};

// Work done outside of an evaluation step: bytes searched, items sorted. Free of cost when no render runs.
inline void charge_work(size_t units) {
  if (Budget* budget = Budget::current()) budget->work(units);
}
inline void check_room(size_t bytes) {
  if (Budget* budget = Budget::current()) budget->check_room(bytes);
}

// The memory of one heap object, counted for as long as the object lives.
class Charge {
 public:
  Charge() = default;
  explicit Charge(size_t bytes) : budget_(Budget::current()) { add(bytes); }
  ~Charge() {
    if (budget_) budget_->release_memory(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  void add(size_t bytes) {
    if (!budget_) return;
    budget_->add_memory(bytes);
    bytes_ += bytes;
  }

 private:
  Budget* budget_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace cairn::tmpl
