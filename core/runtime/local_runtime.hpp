// ModelRuntime in this process: loads one model with its plugin and runs it on a thread of its own.
// Used by the host for trusted plugins, by tests and by embedders.
#pragma once

#include <memory>
#include <thread>

#include "core/conductor/model_adapter.hpp"
#include "core/plugin/host_services.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/open_weights.hpp"
#include "core/plugin/request_state.hpp"
#include "core/plugin/thread_context.hpp"
#include "core/resources/factory.hpp"
#include "core/runtime/deployment.hpp"
#include "core/runtime/model_runtime.hpp"
#include "core/worker/worker.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace cairn {

class LocalRuntime final : public ModelRuntime, public ControlQueue {
 public:
  // Opens the model, loads its weights and starts its thread. `weights` may be null for a plugin that needs none;
  // `progress` may be null and is used during this call only. Throws what the plugin or the host objects to.
  LocalRuntime(std::shared_ptr<PluginLibrary> plugin, std::shared_ptr<OpenWeights> weights,
               const DeploymentConfig& deployment, ProgressSink* progress);
  ~LocalRuntime() override;

  const ModelDescription& describe() const override { return description_; }
  RequestHandle submit(RequestSpec spec, std::unique_ptr<OutputSink> sink) override;
  void cancel(RequestHandle handle) override { worker_->cancel(handle); }
  void drain(std::chrono::steady_clock::time_point deadline) override;
  void wait_drained() override { worker_->wait_drained(); }
  RuntimeStats stats() const override;
  RuntimeHealth health() const override { return health_.load(std::memory_order_acquire); }

  // The vocabulary for text prompts: of the weights, bytes, or null (TextSource::kNone).
  std::shared_ptr<const Tokenizer> tokenizer() const { return tokenizer_; }
  const std::shared_ptr<OpenWeights>& weights() const { return weights_; }

  // Builds without starting the thread, so that a test or benchmark can drive the worker step by step.
  struct Paused {};
  LocalRuntime(std::shared_ptr<PluginLibrary> plugin, std::shared_ptr<OpenWeights> weights,
               const DeploymentConfig& deployment, ProgressSink* progress, Paused paused);
  bool run_once();

 private:
  void open(const DeploymentConfig& deployment, ProgressSink* progress);
  void create_nodes();
  void close() noexcept;
  void describe_model(const DeploymentConfig& deployment);
  void check_spec(const RequestSpec& spec) const;
  ThreadContext thread_context(std::uint32_t classes);
  void post(void (*fn)(void* argument), void* argument) override { worker_->post(fn, argument); }
  void start_thread();

  std::shared_ptr<PluginLibrary> plugin_;
  std::shared_ptr<OpenWeights> weights_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  ModelDescription description_;
  std::unique_ptr<kernels::ThreadPool> pool_;
  kernels::Parallel parallel_;
  RequestStateStore request_state_;
  std::shared_ptr<MemoryAccount> memory_ = std::make_shared<MemoryAccount>();

  cairn_model* model_ = nullptr;
  std::vector<std::pair<cairn_node*, const cairn_node_api*>> nodes_;
  ModelSpec spec_;
  std::vector<std::int32_t> end_tokens_;
  ModelResources resources_;
  std::vector<std::unique_ptr<NodeRunner>> runners_;  // by node
  std::unique_ptr<ModelAdapter> adapter_;
  std::unique_ptr<Conductor> conductor_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<ModelRegistration> registration_;
  std::atomic<RuntimeHealth> health_{RuntimeHealth::kLoading};
  std::thread thread_;
};

}  // namespace cairn
