// "cairn.log", "cairn.status", "cairn.progress", "cairn.thread_check", "cairn.random" and "cairn.threads".
#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <numbers>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/plugin/host_services.hpp"
#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"
#include "kernels/cpu/sampling.hpp"

namespace cairn {

namespace {

// Levels this host does not know are written as errors.
LogLevel log_level(std::uint32_t level) {
  switch (level) {
    case CAIRN_LOG_TRACE:
      return LogLevel::kTrace;
    case CAIRN_LOG_DEBUG:
      return LogLevel::kDebug;
    case CAIRN_LOG_INFO:
      return LogLevel::kInfo;
    case CAIRN_LOG_WARNING:
      return LogLevel::kWarning;
    default:
      return LogLevel::kError;
  }
}

cairn_status report_progress(double fraction, cairn_str what) {
  if (!(fraction >= 0.0 && fraction <= 1.0)) {
    return set_status(CAIRN_STATUS_INVALID_ARGUMENT, "progress.report: the fraction must be between 0 and 1");
  }
  return guard("progress.report", [&] {
    ProgressSink* sink = current_thread().progress;
    if (sink != nullptr && !sink->report(fraction, from_abi_str(what))) {
      throw Cancelled("the load was cancelled; return this status");
    }
  });
}

// Streams of the counter-based generator. The sampler draws from stream 0 of a request's seed.
constexpr std::uint32_t kUniformStream = 0;
constexpr std::uint32_t kNormalRadiusStream = 1;
constexpr std::uint32_t kNormalAngleStream = 2;

cairn_status random_uniform(std::uint64_t seed, std::uint64_t offset, float* out, std::uint64_t n) {
  if (out == nullptr && n != 0) return set_status(CAIRN_STATUS_INVALID_ARGUMENT, "random.uniform: out is NULL");
  for (std::uint64_t i = 0; i < n; ++i) {
    // 24 bits, rounded down: converting the double could round up to 1.
    out[i] =
        static_cast<float>(std::floor(kernels::philox_uniform(seed, offset + i, kUniformStream) * 0x1p24) * 0x1p-24);
  }
  return CAIRN_STATUS_OK;
}

cairn_status random_normal(std::uint64_t seed, std::uint64_t offset, float* out, std::uint64_t n) {
  if (out == nullptr && n != 0) return set_status(CAIRN_STATUS_INVALID_ARGUMENT, "random.normal: out is NULL");
  for (std::uint64_t i = 0; i < n; ++i) {
    const double radius = 1.0 - kernels::philox_uniform(seed, offset + i, kNormalRadiusStream);  // (0, 1]
    const double angle = kernels::philox_uniform(seed, offset + i, kNormalAngleStream);
    out[i] = static_cast<float>(std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle));
  }
  return CAIRN_STATUS_OK;
}

cairn_status parallel_for(std::int32_t n, void (*fn)(void*, std::int32_t), void* argument) {
  if (fn == nullptr || n < 0) {
    return set_status(CAIRN_STATUS_INVALID_ARGUMENT, "threads.parallel_for: fn is NULL or n is negative");
  }
  current_parallel().for_each(n, [&](int index, int) { fn(argument, index); });
  return CAIRN_STATUS_OK;
}

struct ControlQueues {
  std::mutex mutex;
  std::unordered_map<const cairn_model*, ControlQueue*> by_model;
};
ControlQueues& control_queues() {
  static ControlQueues queues;
  return queues;
}

cairn_status post(cairn_model* model, void (*fn)(void*), void* argument) {
  if (fn == nullptr) return set_status(CAIRN_STATUS_INVALID_ARGUMENT, "threads.post: fn is NULL");
  return guard("threads.post", [&] {
    ControlQueues& queues = control_queues();
    const std::lock_guard lock(queues.mutex);  // held over post(), so that a queue cannot go away under it
    const auto found = queues.by_model.find(model);
    if (found == queues.by_model.end()) throw NotFound("the model is not open (any more); the call is dropped");
    found->second->post(fn, argument);
  });
}

}  // namespace

ModelRegistration::ModelRegistration(const cairn_model* model, ControlQueue& queue) : model_(model) {
  ControlQueues& queues = control_queues();
  const std::lock_guard lock(queues.mutex);
  if (!queues.by_model.emplace(model, &queue).second) throw InternalError("This model is registered already.");
}

ModelRegistration::~ModelRegistration() {
  ControlQueues& queues = control_queues();
  const std::lock_guard lock(queues.mutex);
  queues.by_model.erase(model_);
}

const cairn_log_service kLogService = {
    .struct_size = sizeof(cairn_log_service),
    .enabled = [](std::uint32_t level) -> std::uint32_t { return log_enabled(log_level(level)) ? 1 : 0; },
    .write = [](std::uint32_t level, cairn_str component,
                cairn_str message) { log(log_level(level), from_abi_str(component), from_abi_str(message)); },
};

const cairn_status_service kStatusService = {
    .struct_size = sizeof(cairn_status_service),
    .set = [](cairn_status code, cairn_str message) { return set_status(code, from_abi_str(message)); },
    .detail = [](cairn_str key, cairn_str value) { add_status_detail(from_abi_str(key), from_abi_str(value)); },
    .last = [] { return to_abi_str(last_status_message()); },
};

const cairn_progress_service kProgressService = {
    .struct_size = sizeof(cairn_progress_service),
    .report = report_progress,
};

const cairn_thread_check_service kThreadCheckService = {
    .struct_size = sizeof(cairn_thread_check_service),
    .current = [] { return current_thread().classes; },
};

const cairn_random_service kRandomService = {
    .struct_size = sizeof(cairn_random_service),
    .uniform = random_uniform,
    .normal = random_normal,
};

const cairn_threads_service kThreadsService = {
    .struct_size = sizeof(cairn_threads_service),
    .count = []() -> std::int32_t { return current_parallel().threads; },
    .parallel_for = parallel_for,
    .post = post,
};

}  // namespace cairn
