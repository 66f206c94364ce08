// The list of services and the process-wide cairn_host.
#include "core/plugin/host_services.hpp"

#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

std::span<const HostInterface> host_interfaces() noexcept {
  static const HostInterface kInterfaces[] = {
      {CAIRN_LOG_INTERFACE, CAIRN_LOG_REVISION, &kLogService},
      {CAIRN_STATUS_INTERFACE, CAIRN_STATUS_REVISION, &kStatusService},
      {CAIRN_TENSOR_INTERFACE, CAIRN_TENSOR_REVISION, &kTensorService},
      {CAIRN_MEMORY_INTERFACE, CAIRN_MEMORY_REVISION, &kMemoryService},
      {CAIRN_WEIGHTS_INTERFACE, CAIRN_WEIGHTS_REVISION, &kWeightsService},
      {CAIRN_OPS_INTERFACE, CAIRN_OPS_REVISION, &kOpsService},
      {CAIRN_THREADS_INTERFACE, CAIRN_THREADS_REVISION, &kThreadsService},
      {CAIRN_RANDOM_INTERFACE, CAIRN_RANDOM_REVISION, &kRandomService},
      {CAIRN_TOKENIZER_INTERFACE, CAIRN_TOKENIZER_REVISION, &kTokenizerService},
      {CAIRN_CHAT_TEMPLATE_INTERFACE, CAIRN_CHAT_TEMPLATE_REVISION, &kChatTemplateService},
      {CAIRN_MEDIA_INTERFACE, CAIRN_MEDIA_REVISION, &kMediaService},
      {CAIRN_REQUEST_INTERFACE, CAIRN_REQUEST_REVISION, &kRequestService},
      {CAIRN_REGIONS_INTERFACE, CAIRN_REGIONS_REVISION, &kRegionService},
      {CAIRN_COLLECTIVES_INTERFACE, CAIRN_COLLECTIVES_REVISION, &kCollectiveService},
      {CAIRN_METRICS_INTERFACE, CAIRN_METRICS_REVISION, &kMetricsService},
      {CAIRN_PROGRESS_INTERFACE, CAIRN_PROGRESS_REVISION, &kProgressService},
      {CAIRN_THREAD_CHECK_INTERFACE, CAIRN_THREAD_CHECK_REVISION, &kThreadCheckService},
  };
  return kInterfaces;
}

namespace {

const void* get_interface(const cairn_host* host, cairn_str id, std::uint32_t min_revision) {
  (void)host;
  for (const HostInterface& offered : host_interfaces()) {
    if (offered.id == from_abi_str(id)) return offered.revision >= min_revision ? offered.table : nullptr;
  }
  return nullptr;
}

}  // namespace

const cairn_host* host_base() noexcept {
  static constexpr std::string_view kVersion = CAIRN_VERSION;
  static const cairn_host kHost = {
      sizeof(cairn_host), CAIRN_ABI_MAJOR, CAIRN_ABI_MINOR, get_interface, {kVersion.data(), kVersion.size()}};
  return &kHost;
}

}  // namespace cairn
