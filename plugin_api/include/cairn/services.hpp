// The host's service tables, fetched once when the plugin is initialised. Used by every SDK header; a plugin that needs
// a service its host lacks gets a clear error from required().
#pragma once

#include "cairn/abi.h"
#include "cairn/views.hpp"

namespace cairn {

// NULL: this host does not offer the service. Tables live as long as the process.
struct Services {
  const cairn_host* host = nullptr;
  const cairn_log_service* log = nullptr;
  const cairn_status_service* status = nullptr;
  const cairn_tensor_service* tensor = nullptr;
  const cairn_memory_service* memory = nullptr;
  const cairn_weights_service* weights = nullptr;
  const cairn_ops_service* ops = nullptr;
  const cairn_threads_service* threads = nullptr;
  const cairn_random_service* random = nullptr;
  const cairn_tokenizer_service* tokenizer = nullptr;
  const cairn_chat_template_service* chat_template = nullptr;
  const cairn_media_service* media = nullptr;
  const cairn_request_service* request = nullptr;
  const cairn_region_service* regions = nullptr;
  const cairn_collective_service* collectives = nullptr;
  const cairn_metrics_service* metrics = nullptr;
  const cairn_progress_service* progress = nullptr;
  const cairn_thread_check_service* thread_check = nullptr;

  static Services from(const cairn_host* host) noexcept {
    Services found;
    found.host = host;
    found.fetch(found.log, CAIRN_LOG_INTERFACE, CAIRN_LOG_REVISION);
    found.fetch(found.status, CAIRN_STATUS_INTERFACE, CAIRN_STATUS_REVISION);
    found.fetch(found.tensor, CAIRN_TENSOR_INTERFACE, CAIRN_TENSOR_REVISION);
    found.fetch(found.memory, CAIRN_MEMORY_INTERFACE, CAIRN_MEMORY_REVISION);
    found.fetch(found.weights, CAIRN_WEIGHTS_INTERFACE, CAIRN_WEIGHTS_REVISION);
    found.fetch(found.ops, CAIRN_OPS_INTERFACE, CAIRN_OPS_REVISION);
    found.fetch(found.threads, CAIRN_THREADS_INTERFACE, CAIRN_THREADS_REVISION);
    found.fetch(found.random, CAIRN_RANDOM_INTERFACE, CAIRN_RANDOM_REVISION);
    found.fetch(found.tokenizer, CAIRN_TOKENIZER_INTERFACE, CAIRN_TOKENIZER_REVISION);
    found.fetch(found.chat_template, CAIRN_CHAT_TEMPLATE_INTERFACE, CAIRN_CHAT_TEMPLATE_REVISION);
    found.fetch(found.media, CAIRN_MEDIA_INTERFACE, CAIRN_MEDIA_REVISION);
    found.fetch(found.request, CAIRN_REQUEST_INTERFACE, CAIRN_REQUEST_REVISION);
    found.fetch(found.regions, CAIRN_REGIONS_INTERFACE, CAIRN_REGIONS_REVISION);
    found.fetch(found.collectives, CAIRN_COLLECTIVES_INTERFACE, CAIRN_COLLECTIVES_REVISION);
    found.fetch(found.metrics, CAIRN_METRICS_INTERFACE, CAIRN_METRICS_REVISION);
    found.fetch(found.progress, CAIRN_PROGRESS_INTERFACE, CAIRN_PROGRESS_REVISION);
    found.fetch(found.thread_check, CAIRN_THREAD_CHECK_INTERFACE, CAIRN_THREAD_CHECK_REVISION);
    return found;
  }

 private:
  template <class Table>
  void fetch(const Table*& table, std::string_view id, std::uint32_t revision) noexcept {
    if (!CAIRN_HAS(host, cairn_host, get_interface)) return;
    table = static_cast<const Table*>(host->get_interface(host, str(id), revision));
  }
};

// This plugin's services. Written by init, before any other thread runs plugin code; read-only afterwards.
inline Services& services() noexcept {
  static Services instance;
  return instance;
}

}  // namespace cairn
