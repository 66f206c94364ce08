// The service tables that services_*.cpp define and host_services.cpp lists.
#pragma once

#include "cairn/abi.h"

namespace cairn {

extern const cairn_log_service kLogService;
extern const cairn_status_service kStatusService;
extern const cairn_tensor_service kTensorService;
extern const cairn_memory_service kMemoryService;
extern const cairn_weights_service kWeightsService;
extern const cairn_ops_service kOpsService;
extern const cairn_threads_service kThreadsService;
extern const cairn_random_service kRandomService;
extern const cairn_tokenizer_service kTokenizerService;
extern const cairn_chat_template_service kChatTemplateService;
extern const cairn_media_service kMediaService;
extern const cairn_request_service kRequestService;
extern const cairn_region_service kRegionService;
extern const cairn_collective_service kCollectiveService;
extern const cairn_metrics_service kMetricsService;
extern const cairn_progress_service kProgressService;
extern const cairn_thread_check_service kThreadCheckService;

}  // namespace cairn
