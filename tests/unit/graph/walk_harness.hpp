// Runs WalkStates in tests: makes values that carry a number, and records what leaves the graph as lines of text.
#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/model_spec.hpp"
#include "core/graph/walk_plan.hpp"
#include "core/graph/walk_state.hpp"
#include "tests/unit/graph/desc_builder.hpp"

namespace cairn::testing {

inline SignalValue number(std::int32_t value) {
  const std::int64_t shape[] = {1};
  TensorPtr tensor = Tensor::create(kInt32, shape);
  *reinterpret_cast<std::int32_t*>(tensor->data()) = value;
  return SignalValue(std::move(tensor));
}

// "7", "1 2 3", or "signal" for a value without tensors.
inline std::string show(const SignalValue& value) {
  std::string result;
  for (const TensorPtr& tensor : value) {
    if (!result.empty()) result += ' ';
    result += std::to_string(*reinterpret_cast<const std::int32_t*>(tensor->data()));
  }
  return result.empty() ? "signal" : result;
}

class RecordingSink : public RoutedSink {
 public:
  void emit(std::uint32_t signal, std::uint32_t modality, const SignalValue& value, bool new_token) override {
    lines.push_back("emit " + std::to_string(signal) + "/" + std::to_string(modality) + (new_token ? "+: " : ": ") +
                    show(value));
  }
  void persist(std::uint32_t signal, const SignalValue& value) override {
    lines.push_back("persist " + std::to_string(signal) + ": " + show(value));
  }
  std::vector<std::string> lines;
};

// A compiled walk with one run of it.
class WalkRun {
 public:
  explicit WalkRun(ModelBuilder& model, std::uint32_t walk = 0)
      : spec(ModelSpec::from_desc(model.desc())), plan(WalkPlan::compile(spec, walk)) {
    state.start(plan);
  }

  bool give(std::uint32_t node, std::uint32_t signal, std::int32_t value) {
    return state.ingest(node, signal, number(value));
  }
  // Runs a node: `outputs` are (signal, number).
  void step(std::uint32_t node, const std::vector<std::pair<std::uint32_t, std::int32_t>>& outputs,
            std::uint64_t withheld = 0) {
    std::vector<OutputValue> values;
    for (const auto& [signal, value] : outputs) values.push_back({signal, number(value)});
    state.set_in_flight(node, true);
    state.complete(node, values, withheld, sink);
  }
  std::vector<std::uint32_t> ready() const {
    std::vector<std::uint32_t> nodes;
    for (std::uint64_t mask = state.ready_nodes(); mask != 0; mask &= mask - 1) {
      nodes.push_back(static_cast<std::uint32_t>(std::countr_zero(mask)));
    }
    return nodes;
  }
  std::string input(std::uint32_t node, std::uint32_t i) const { return show(state.input(node, i)); }

  ModelSpec spec;
  WalkPlan plan;
  WalkState state;
  RecordingSink sink;
};

}  // namespace cairn::testing
