// The host's side of abi.h section 13: the process-wide cairn_host and its tables of services, and the few hooks
// through which the runtime and the front end serve them. The tables themselves are in services_*.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/abi.h"

namespace cairn {

// The one cairn_host of this process, handed to every plugin.
const cairn_host* host_base() noexcept;

struct HostInterface {
  std::string_view id;
  std::uint32_t revision;
  const void* table;
};
// Every table this host has. Those that only answer CAIRN_STATUS_UNSUPPORTED (media, regions, collectives) are among
// them.
std::span<const HostInterface> host_interfaces() noexcept;

// Bytes that one model holds through "cairn.memory". Any thread.
class MemoryAccount {
 public:
  void add(std::int64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  std::int64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> bytes_{0};
};

// A model's control thread, for "cairn.threads".post. post() is called from any thread and must not block.
class ControlQueue {
 public:
  virtual ~ControlQueue() = default;
  virtual void post(void (*fn)(void* argument), void* argument) = 0;
};
// Makes a model known to post() until the registration is destroyed (before close()). `queue` must outlive it.
class ModelRegistration {
 public:
  ModelRegistration(const cairn_model* model, ControlQueue& queue);
  ~ModelRegistration();
  ModelRegistration(const ModelRegistration&) = delete;
  ModelRegistration& operator=(const ModelRegistration&) = delete;

 private:
  const cairn_model* model_;
};

// A metric a plugin defined, for /metrics. Names are as the plugin gave them (checked to be Prometheus names, prefixed
// "cairn_plugin_" by the host).
struct PluginMetric {
  std::uint32_t kind = CAIRN_METRIC_COUNTER;  // CAIRN_METRIC_*
  std::string name;
  std::string help;
  double value = 0.0;
};
std::vector<PluginMetric> plugin_metrics();

// A prepacked matrix behind cairn_matrix lives until matrix_release; how many there are, for the leak counters.
std::int64_t live_matrices() noexcept;

}  // namespace cairn
