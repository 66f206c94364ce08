#include "core/runtime/local_runtime.hpp"

#include <algorithm>
#include <chrono>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/plugin/status.hpp"

namespace cairn {
namespace {

// All cores but one for the front end; on a small machine every core, since the pool sleeps when it is idle.
int default_threads() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return cores > 3 ? cores - 1 : std::max(cores, 1);
}

cairn_dtype dtype_of(const std::string& name) {
  if (name == "float32") return {CAIRN_DTYPE_FLOAT, 32, 1};
  if (name == "float16") return {CAIRN_DTYPE_FLOAT, 16, 1};
  if (name == "bfloat16") return {CAIRN_DTYPE_BFLOAT, 16, 1};
  throw InvalidArgument("autocast_dtype is '" + name + "'; it must be float32, float16 or bfloat16.", "autocast_dtype");
}

}  // namespace

LocalRuntime::LocalRuntime(std::shared_ptr<PluginLibrary> plugin, std::shared_ptr<OpenWeights> weights,
                           const DeploymentConfig& deployment, ProgressSink* progress)
    : LocalRuntime(std::move(plugin), std::move(weights), deployment, progress, Paused{}) {
  start_thread();
}

LocalRuntime::LocalRuntime(std::shared_ptr<PluginLibrary> plugin, std::shared_ptr<OpenWeights> weights,
                           const DeploymentConfig& deployment, ProgressSink* progress, Paused paused)
    : plugin_(std::move(plugin)), weights_(std::move(weights)) {
  (void)paused;
  pool_ = std::make_unique<kernels::ThreadPool>(deployment.threads > 0 ? deployment.threads : default_threads());
  parallel_ = pool_->parallel();
  try {
    open(deployment, progress);
  } catch (...) {
    close();
    throw;
  }
  health_.store(RuntimeHealth::kReady, std::memory_order_release);
}

LocalRuntime::~LocalRuntime() {
  if (worker_ != nullptr) worker_->stop();
  if (thread_.joinable()) {
    thread_.join();
  } else if (worker_ != nullptr) {
    const ThreadScope scope(thread_context(CAIRN_THREAD_MAIN | CAIRN_THREAD_DEVICE | CAIRN_THREAD_CONTROL));
    worker_->run();  // stopped: ends what is open and returns
  }
  close();
}

ThreadContext LocalRuntime::thread_context(std::uint32_t classes) {
  ThreadContext context;
  context.classes = classes;
  context.parallel = &parallel_;
  context.request_state = &request_state_;
  context.cancellation = worker_.get();
  context.memory = memory_;
  return context;
}

void LocalRuntime::open(const DeploymentConfig& deployment, ProgressSink* progress) {
  ThreadContext context = thread_context(CAIRN_THREAD_CONTROL);
  context.loading = true;
  context.progress = progress;
  const ThreadScope scope(context);
  const cairn_model_api& api = plugin_->model_api();
  const OwnedMap kwargs = OwnedMap::from_value(deployment.model_kwargs, "model_kwargs");
  cairn_open_args args{};
  args.struct_size = CAIRN_SIZE(cairn_open_args, autocast_dtype);
  args.host = host_base();
  args.weights = weights_ != nullptr ? weights_->handle() : nullptr;
  args.name = to_abi_str(deployment.model);
  args.model_kwargs = kwargs.view();
  args.device = {CAIRN_DEVICE_CPU, 0};
  args.tp_world_size = 1;
  args.sp_world_size = 1;
  args.max_seq_len = deployment.max_seq_len.value_or(0);
  if (deployment.autocast_dtype) args.autocast_dtype = dtype_of(*deployment.autocast_dtype);
  check_status(api.open(&args, &model_), "The plugin '" + plugin_->identity().id + "' could not open the model");
  const cairn_model_desc* desc = nullptr;
  check_status(api.describe(model_, &desc), "describe of plugin '" + plugin_->identity().id + "'");
  if (desc == nullptr) throw BadFile("The plugin '" + plugin_->identity().id + "' described no model.");
  spec_ = ModelSpec::from_desc(*desc);
  if (spec_.max_seq_len <= 0) throw InvalidArgument("The model's max_seq_len must be above 0.");
  if (deployment.max_seq_len) spec_.max_seq_len = std::min(spec_.max_seq_len, *deployment.max_seq_len);
  describe_model(deployment);

  WorkerLimits limits;
  if (deployment.max_concurrent_requests) {
    limits.max_requests =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(*deployment.max_concurrent_requests, 1, 65536));
  }
  if (deployment.max_queue) {
    limits.max_queue = static_cast<std::uint32_t>(std::clamp<std::int64_t>(*deployment.max_queue, 0, 1 << 20));
  }
  if (deployment.max_batch_tokens) limits.max_batch_tokens = std::max<std::int64_t>(1, *deployment.max_batch_tokens);
  create_nodes();
  ResourceOptions options;
  options.max_slots = limits.max_requests + limits.max_queue;
  options.max_requests = limits.max_requests;
  options.max_seq_len = spec_.max_seq_len;
  options.kv_cache_bytes = deployment.kv_cache_bytes.value_or(0);
  resources_ = build_resources(spec_, deployment.resources, options);
  for (std::uint32_t node = 0; node < spec_.nodes.size(); ++node) {
    std::vector<Resource*> bound;
    for (Resource* resource : resources_.order) {
      const auto& nodes = spec_.resources[resource->index()].nodes;
      if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) bound.push_back(resource);
    }
    runners_.push_back(std::make_unique<NodeRunner>(node, spec_.nodes[node].name, spec_.nodes[node].flags,
                                                    nodes_[node].first, *nodes_[node].second, std::move(bound)));
  }
  adapter_ = std::make_unique<ModelAdapter>(api, model_, spec_);
  conductor_ = std::make_unique<Conductor>(spec_, *adapter_);
  engine_ = std::make_unique<Engine>(static_cast<std::uint32_t>(spec_.signals.size()),
                                     static_cast<std::uint32_t>(spec_.labels.size()), parallel_);
  worker_ = std::make_unique<Worker>(spec_, api, model_, *conductor_, *engine_, runners_, resources_.order, limits);
  registration_ = std::make_unique<ModelRegistration>(model_, *this);
  for (const auto& runner : runners_) {
    if (runner->api().warmup_compiles != nullptr) {
      check_status(runner->api().warmup_compiles(runner->node()), "warmup_compiles of node '" + runner->name() + "'");
    }
  }
}

void LocalRuntime::create_nodes() {
  const cairn_model_api& api = plugin_->model_api();
  for (std::uint32_t node = 0; node < spec_.nodes.size(); ++node) {
    cairn_node* created = nullptr;
    const cairn_node_api* table = nullptr;
    check_status(api.create_node(model_, node, &created, &table),
                 "The plugin could not create node '" + spec_.nodes[node].name + "'");
    if (table == nullptr) {
      throw BadFile("The plugin created node '" + spec_.nodes[node].name + "' without a table.");
    }
    nodes_.emplace_back(created, table);
  }
}

void LocalRuntime::describe_model(const DeploymentConfig& deployment) {
  description_.plugin_id = plugin_->identity().id;
  description_.plugin_version = plugin_->identity().version;
  description_.architecture = spec_.architecture;
  description_.max_seq_len = spec_.max_seq_len;
  description_.vocab_size = spec_.vocab_size;
  description_.input_modalities = spec_.input_modalities;
  description_.output_modalities = spec_.output_modalities;
  description_.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  end_tokens_ = spec_.end_tokens;
  if (spec_.text == CAIRN_TEXT_BYTES) {
    description_.text = TextSource::kBytes;
    tokenizer_ = Tokenizer::bytes();
  } else if (spec_.text == CAIRN_TEXT_VOCABULARY && weights_ != nullptr) {
    try {
      tokenizer_ = weights_->tokenizer();
      description_.text = TextSource::kVocabulary;
      const std::vector<std::int32_t>& ends = tokenizer_->end_token_ids();
      end_tokens_.insert(end_tokens_.end(), ends.begin(), ends.end());
    } catch (const std::exception& error) {
      // Token ids still work; text is refused with this reason.
      log(LogLevel::kWarning, "runtime", std::string("the model serves token ids only: ") + error.what());
    }
  }
  std::sort(end_tokens_.begin(), end_tokens_.end());
  end_tokens_.erase(std::unique(end_tokens_.begin(), end_tokens_.end()), end_tokens_.end());
  description_.id = deployment.served_name;
  if (description_.id.empty() && !deployment.weights.empty()) description_.id = deployment.weights.stem().string();
  if (description_.id.empty()) description_.id = deployment.weights.parent_path().filename().string();
  if (description_.id.empty()) description_.id = spec_.name;
}

void LocalRuntime::close() noexcept {
  registration_.reset();
  worker_.reset();
  engine_.reset();
  conductor_.reset();
  adapter_.reset();
  runners_.clear();
  const ThreadScope scope(thread_context(CAIRN_THREAD_CONTROL));
  if (model_ != nullptr) {
    const cairn_model_api& api = plugin_->model_api();
    for (const auto& [node, table] : nodes_) {
      request_state_.drop_node(node);
      if (api.destroy_node != nullptr) api.destroy_node(model_, node);
    }
    nodes_.clear();
    if (api.close != nullptr) api.close(model_);
    model_ = nullptr;
  }
  resources_ = {};
}

void LocalRuntime::start_thread() {
  thread_ = std::thread([this] {
    const ThreadScope scope(thread_context(CAIRN_THREAD_MAIN | CAIRN_THREAD_DEVICE | CAIRN_THREAD_CONTROL));
    worker_->run();
  });
}

bool LocalRuntime::run_once() {
  const ThreadScope scope(thread_context(CAIRN_THREAD_MAIN | CAIRN_THREAD_DEVICE | CAIRN_THREAD_CONTROL));
  return worker_->run_once();
}

void LocalRuntime::check_spec(const RequestSpec& spec) const {
  for (const std::int32_t id : spec.prompt_ids) {
    if (id < 0 || (spec_.vocab_size > 0 && id >= spec_.vocab_size)) {
      throw InvalidArgument("Prompt token " + std::to_string(id) + " is outside of the vocabulary of " +
                                std::to_string(spec_.vocab_size) + " tokens.",
                            "prompt");
    }
  }
  for (const auto& [token, value] : spec.sampling.logit_bias) {
    if (token < 0 || (spec_.vocab_size > 0 && token >= spec_.vocab_size)) {
      throw InvalidArgument("logit_bias names token " + std::to_string(token) + ", and the vocabulary has " +
                                std::to_string(spec_.vocab_size) + " tokens.",
                            "logit_bias");
    }
  }
}

RequestHandle LocalRuntime::submit(RequestSpec spec, std::unique_ptr<OutputSink> sink) {
  check_spec(spec);
  IncomingRequest request;
  request.handle = worker_->reserve_slot();
  try {
    {
      const ThreadScope scope(thread_context(CAIRN_THREAD_POOL));
      request.prompt = adapter_->process_prompt(spec);
    }
    const std::int64_t room = spec_.max_seq_len - request.prompt.prompt_tokens;
    if (request.prompt.prompt_tokens <= 0)
      throw InvalidArgument("The prompt is empty; give at least one token.", "prompt");
    if (room < 1) {
      throw InvalidArgument("The prompt has " + std::to_string(request.prompt.prompt_tokens) +
                                " tokens, and the model's context of " + std::to_string(spec_.max_seq_len) +
                                " tokens leaves no room for an answer.",
                            "prompt");
    }
    if (spec.max_tokens < 0) throw InvalidArgument("max_tokens must not be negative.", "max_tokens");
    std::int64_t limit = room;
    if (spec_.max_output_tokens > 0) limit = std::min(limit, spec_.max_output_tokens);
    request.max_tokens = spec.max_tokens > 0 ? std::min<std::int64_t>(spec.max_tokens, limit) : limit;
    if (!spec.ignore_eos) request.end_tokens = end_tokens_;
    request.end_tokens.insert(request.end_tokens.end(), spec.stop_token_ids.begin(), spec.stop_token_ids.end());
  } catch (...) {
    worker_->release_slot(request.handle);
    throw;
  }
  request.spec = std::move(spec);
  request.sink = std::move(sink);
  const RequestHandle handle = request.handle;
  worker_->submit(std::move(request));
  return handle;
}

void LocalRuntime::drain(std::chrono::steady_clock::time_point deadline) {
  health_.store(RuntimeHealth::kDraining, std::memory_order_release);
  worker_->drain(deadline);
}

RuntimeStats LocalRuntime::stats() const {
  const WorkerCounters& counters = worker_->counters();
  const auto read = [](const std::atomic<std::int64_t>& value) { return value.load(std::memory_order_relaxed); };
  RuntimeStats stats;
  stats.running = read(counters.running);
  stats.waiting = read(counters.waiting);
  stats.open_requests = read(counters.open);
  stats.kv_pages_used = read(counters.units_used);
  stats.kv_pages_total = read(counters.units_total);
  stats.live_tensors = Tensor::live_count();
  stats.prompt_tokens_total = read(counters.prompt_tokens);
  stats.generation_tokens_total = read(counters.generation_tokens);
  stats.steps_total = read(counters.steps);
  for (std::size_t i = 0; i < stats.finished_total.size(); ++i) stats.finished_total[i] = read(counters.finished[i]);
  return stats;
}

}  // namespace cairn
