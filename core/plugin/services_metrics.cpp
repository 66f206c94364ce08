// "cairn.metrics": counters and gauges that plugins define while they load.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <mutex>

#include "core/base/error.hpp"
#include "core/plugin/host_services.hpp"
#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"

namespace cairn {

namespace {

constexpr std::size_t kMaxMetrics = 1024;
constexpr std::size_t kMaxNameBytes = 128;
constexpr std::size_t kMaxHelpBytes = 1024;

struct Metric {
  std::uint32_t kind;
  std::string name;
  std::string help;
  std::atomic<double> value{0.0};
};

// Metrics are never removed: a plugin may record from a thread that outlives its model, and counters must not go back.
struct Metrics {
  std::mutex mutex;
  std::deque<Metric> list;
};
Metrics& metrics() {
  static Metrics all;
  return all;
}

bool is_metric_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

cairn_status define(std::uint32_t kind, cairn_str name, cairn_str help, cairn_metric** out_borrowed) {
  return guard("metrics.define", [&]() -> cairn_status {
    const std::string_view text = from_abi_str(name);
    if (out_borrowed == nullptr) throw InvalidArgument("out_borrowed is NULL");
    if (!current_thread().loading) {
      return set_status(CAIRN_STATUS_FAILED_PRECONDITION,
                        "metrics.define: metrics are defined in init and open only, they are frozen afterwards");
    }
    if (kind != CAIRN_METRIC_COUNTER && kind != CAIRN_METRIC_GAUGE) {
      throw InvalidArgument(fmt::format("kind {} is neither a counter nor a gauge", kind));
    }
    if (!is_metric_name(text)) {
      throw InvalidArgument(
          fmt::format("'{}' is not a metric name: 1 to {} letters, digits and underscores, no digit first",
                      text.substr(0, kMaxNameBytes), kMaxNameBytes));
    }
    Metrics& all = metrics();
    const std::lock_guard lock(all.mutex);
    for (Metric& metric : all.list) {
      if (metric.name != text) continue;
      if (metric.kind != kind) {
        return set_status(CAIRN_STATUS_ALREADY_EXISTS,
                          fmt::format("metrics.define: '{}' exists already with the other kind", text));
      }
      *out_borrowed = reinterpret_cast<cairn_metric*>(&metric);
      return CAIRN_STATUS_OK;
    }
    if (all.list.size() >= kMaxMetrics)
      throw ResourceExhausted(fmt::format("there are {} metrics already", kMaxMetrics));
    Metric& metric = all.list.emplace_back();
    metric.kind = kind;
    metric.name = text;
    metric.help = from_abi_str(help).substr(0, kMaxHelpBytes);
    *out_borrowed = reinterpret_cast<cairn_metric*>(&metric);
    return CAIRN_STATUS_OK;
  });
}

void record(cairn_metric* handle, double value) {
  if (handle == nullptr || !std::isfinite(value)) return;
  auto& metric = *reinterpret_cast<Metric*>(handle);
  if (metric.kind == CAIRN_METRIC_GAUGE) {
    metric.value.store(value, std::memory_order_relaxed);
  } else if (value >= 0.0) {
    metric.value.fetch_add(value, std::memory_order_relaxed);
  }
}

}  // namespace

std::vector<PluginMetric> plugin_metrics() {
  Metrics& all = metrics();
  const std::lock_guard lock(all.mutex);
  std::vector<PluginMetric> result;
  for (const Metric& metric : all.list) {
    result.push_back({.kind = metric.kind,
                      .name = "cairn_plugin_" + metric.name,
                      .help = metric.help,
                      .value = metric.value.load(std::memory_order_relaxed)});
  }
  return result;
}

const cairn_metrics_service kMetricsService = {
    .struct_size = sizeof(cairn_metrics_service),
    .define = define,
    .record = record,
};

}  // namespace cairn
