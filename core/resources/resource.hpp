// The contract every kind of resource answers to: host-owned state a node's layers call. The engine sweeps the
// resources of a node in dependency order through admit, plan and commit; the worker asks reserve before a request may
// take part in steps. All methods run on the device thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "core/resources/step.hpp"

namespace cairn {

// What a request can come to need, known when it is admitted.
struct RequestNeeds {
  std::int64_t prompt_tokens = 0;
  std::int64_t max_tokens = 0;               // output tokens
  std::span<const std::int32_t> prompt_ids;  // owned by the request record until it is removed; may be empty
  const SamplingParams* sampling = nullptr;  // the client's parameters; owned likewise
  std::span<const std::int32_t> end_tokens;  // tokens that end the request; owned likewise
  std::int64_t min_tokens = 0;
};

enum class ReserveOutcome : std::uint8_t { kReserved, kWait, kNeverFits };

class Resource {
 public:
  Resource(std::string key, std::uint32_t index, std::uint32_t kind)
      : key_(std::move(key)), index_(index), kind_(kind) {}
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;
  virtual ~Resource() = default;

  const std::string& key() const { return key_; }
  std::uint32_t index() const { return index_; }
  std::uint32_t kind() const { return kind_; }
  // The table of this kind in abi.h section 12.
  virtual const void* api() const = 0;
  cairn_resource* handle() { return reinterpret_cast<cairn_resource*>(this); }

  // Sets aside what the request can come to need. kNeverFits fills `why` with the numbers.
  virtual ReserveOutcome reserve(RequestHandle request, const RequestNeeds& needs, std::string& why) {
    (void)request, (void)needs, (void)why;
    return ReserveOutcome::kReserved;
  }
  // The request is admitted. `config` is the plugin's resource config of this kind, or null. Throws InvalidArgument.
  virtual void ingest_request(RequestHandle request, const RequestNeeds& needs, const void* config) {
    (void)request, (void)needs, (void)config;
  }
  // Gives back everything of the request, reserved or ingested or neither. Idempotent.
  virtual void remove_request(RequestHandle request) { (void)request; }

  // admit reserves what the step will touch, and throws InvalidArgument or NotSupported for a declaration that cannot
  // be carried out; plan prepares what the layer calls read; commit makes the step's growth count.
  virtual void admit(const ResourceStep& step, StepContext& context) { (void)step, (void)context; }
  virtual void plan(const ResourceStep& step, StepContext& context) { (void)step, (void)context; }
  virtual void commit(const ResourceStep& step, StepContext& context) { (void)step, (void)context; }

  // Units in use and in all (pages, slots), for metrics and leak checks; {0, 0} for resources without units.
  virtual std::pair<std::int64_t, std::int64_t> usage() const { return {0, 0}; }

 private:
  std::string key_;
  std::uint32_t index_;
  std::uint32_t kind_;
};

// The object behind a layer's `self`, after a check that the call comes from inside a forward.
// Throws InvalidArgument otherwise, and Cancelled when the step is to be given up. `function` is the ABI name for the
// message.
StepContext& step_context_of(cairn_step_context* handle, const char* function);

}  // namespace cairn
