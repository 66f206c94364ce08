// ForwardPassArgs of M*: what the model wants a partition to run next, as an owned and checked C++ object.
// Made by the ConductorModel, read by the Conductor.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/signal_value.hpp"
#include "core/tensor/value_abi.hpp"

namespace cairn {

// Tensors under one signal: what process_prompt gives, and what is persisted between walks.
struct SignalTensors {
  std::uint32_t signal = 0;
  SignalValue value;
};

// One input of a walk: goes to WalkState::ingest.
struct RoutedInput {
  std::uint32_t node = 0;
  std::uint32_t signal = 0;
  SignalValue value;
};

// CurrentForwardConductorMetadata.
struct ConductorMetadata {
  std::uint32_t graph_walk = 0;
  bool is_prefill = false;
  std::vector<std::uint32_t> input_modalities;  // indices into the model's modalities
  std::vector<std::uint32_t> output_modalities;
  OwnedMap kwargs;
};

struct ForwardPassArgs {
  ConductorMetadata metadata;
  std::vector<RoutedInput> inputs;
  std::vector<std::uint32_t> unpersist;  // signals
  bool request_done = false;
  OwnedMap step_metadata;
};

}  // namespace cairn
