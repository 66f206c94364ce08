// ConductorModel over a plugin's C table: arguments go into an arena, answers come back as checked, owned objects, and
// a status becomes the exception that fits it, with the plugin's message. Owned by the model runtime.
#pragma once

#include "cairn/abi.h"
#include "core/conductor/conductor_model.hpp"
#include "core/graph/model_spec.hpp"

namespace cairn {

class ModelAdapter final : public ConductorModel {
 public:
  // All three must outlive the adapter. Throws BadFile when the table has no initial_forward_args.
  ModelAdapter(const cairn_model_api& api, cairn_model* model, const ModelSpec& spec);

  // Prompt ids, when there are any, else the prompt's text, as one part of the first input modality. A NULL hook makes
  // one int32 tensor [n] of the ids under signal 0.
  PromptResult process_prompt(const RequestSpec& request) override;
  ForwardPassArgs initial_forward_args(const InitialArgs& args) override;
  // A NULL hook: the request is done.
  ForwardPassArgs partition_forward_args(const TransitionArgs& args) override;
  ResourceReqConfigs request_resource_configs(const RequestConfigArgs& args) override;

 private:
  PromptResult ids_as_prompt(std::span<const std::int32_t> ids) const;
  PromptResult read_prompt(const cairn_prompt_result& answer) const;

  const cairn_model_api& api_;
  cairn_model* model_;
  const ModelSpec& spec_;
};

}  // namespace cairn
