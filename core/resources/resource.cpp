#include "core/resources/resource.hpp"

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

StepContext& step_context_of(cairn_step_context* handle, const char* function) {
  StepContext* context = StepContext::from_handle(handle);
  if (context == nullptr) throw InvalidArgument(std::string(function) + ": the step context is NULL.");
  if (!context->in_forward) {
    throw InvalidArgument(std::string(function) +
                          ": called outside of forward; layers may call a resource only there.");
  }
  if (context->abort != nullptr && context->abort->load(std::memory_order_acquire)) {
    throw Cancelled("The step is given up: a request in it was cancelled.");
  }
  return *context;
}

}  // namespace cairn
