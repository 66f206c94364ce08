// The small host services, called as a plugin calls them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/plugin/request_state.hpp"
#include "core/plugin/thread_context.hpp"
#include "host_table.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace cairn {
namespace {

TEST(HostBase, OffersEveryInterfaceOfTheHeaderByIdAndRevision) {
  const cairn_host* host = host_base();
  EXPECT_EQ(host->abi_major, 1U);
  EXPECT_FALSE(from_abi_str(host->version).empty());
  for (const char* id :
       {"cairn.log", "cairn.status", "cairn.tensor", "cairn.memory", "cairn.weights", "cairn.ops", "cairn.threads",
        "cairn.random", "cairn.tokenizer", "cairn.chat_template", "cairn.media", "cairn.request", "cairn.regions",
        "cairn.collectives", "cairn.metrics", "cairn.progress", "cairn.thread_check"}) {
    EXPECT_NE(host->get_interface(host, to_abi_str(id), 1), nullptr) << id;
    EXPECT_EQ(host->get_interface(host, to_abi_str(id), 1000), nullptr) << id;
  }
  EXPECT_EQ(host->get_interface(host, to_abi_str("cairn.lo"), 1), nullptr);
  EXPECT_EQ(host->get_interface(host, cairn_str{nullptr, 0}, 0), nullptr);
}

TEST(HostBase, EveryTableBeginsWithItsSize) {
  for (const HostInterface& offered : host_interfaces()) {
    const std::uint64_t size = *static_cast<const std::uint64_t*>(offered.table);
    EXPECT_GE(size, 16U) << offered.id;
    EXPECT_LT(size, 4096U) << offered.id;
  }
}

TEST(StatusService, SetsReturnsAndReadsBack) {
  const auto& status = host_table<cairn_status_service>("cairn.status");
  EXPECT_EQ(status.set(CAIRN_STATUS_DATA_LOSS, to_abi_str("tensor x is damaged")), CAIRN_STATUS_DATA_LOSS);
  status.detail(to_abi_str("offset"), to_abi_str("12"));
  EXPECT_EQ(from_abi_str(status.last()), "tensor x is damaged (offset: 12)");
}

TEST(ProgressService, ReportsAndPassesOnTheWishToStop) {
  struct Sink : ProgressSink {
    std::vector<double> seen;
    bool report(double fraction, std::string_view what) override {
      EXPECT_EQ(what, "weights");
      seen.push_back(fraction);
      return fraction < 0.5;
    }
  };
  const auto& progress = host_table<cairn_progress_service>("cairn.progress");
  EXPECT_EQ(progress.report(0.5, to_abi_str("weights")), CAIRN_STATUS_OK);  // nobody listens
  Sink sink;
  const ThreadScope scope(ThreadContext{.progress = &sink});
  EXPECT_EQ(progress.report(0.25, to_abi_str("weights")), CAIRN_STATUS_OK);
  EXPECT_EQ(progress.report(0.75, to_abi_str("weights")), CAIRN_STATUS_CANCELLED);
  EXPECT_EQ(progress.report(1.5, to_abi_str("weights")), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(progress.report(std::nan(""), to_abi_str("weights")), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(sink.seen, (std::vector<double>{0.25, 0.75}));
}

TEST(ThreadCheckService, KnowsWhereItIs) {
  const auto& check = host_table<cairn_thread_check_service>("cairn.thread_check");
  EXPECT_EQ(check.current(), 0U);
  const ThreadScope scope(ThreadContext{.classes = CAIRN_THREAD_DEVICE});
  EXPECT_EQ(check.current(), static_cast<std::uint32_t>(CAIRN_THREAD_DEVICE));
}

TEST(ThreadsService, RunsEveryIndexOnceOnThePool) {
  const auto& threads = host_table<cairn_threads_service>("cairn.threads");
  kernels::ThreadPool pool(3);
  const kernels::Parallel parallel = pool.parallel();
  const ThreadScope scope(ThreadContext{.parallel = &parallel});
  EXPECT_EQ(threads.count(), 3);
  std::vector<std::atomic<int>> runs(1000);
  const auto body = [](void* argument, std::int32_t index) {
    (*static_cast<std::vector<std::atomic<int>>*>(argument))[static_cast<std::size_t>(index)].fetch_add(1);
  };
  EXPECT_EQ(threads.parallel_for(1000, body, &runs), CAIRN_STATUS_OK);
  EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& count) { return count == 1; }));
  EXPECT_EQ(threads.parallel_for(0, body, nullptr), CAIRN_STATUS_OK);
  EXPECT_EQ(threads.parallel_for(-1, body, &runs), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(threads.parallel_for(1, nullptr, &runs), CAIRN_STATUS_INVALID_ARGUMENT);
}

TEST(ThreadsService, PostsToTheModelsQueueWhileItIsOpen) {
  struct Queue : ControlQueue {
    std::vector<void*> posted;
    void post(void (*fn)(void*), void* argument) override {
      EXPECT_NE(fn, nullptr);
      posted.push_back(argument);
    }
  };
  const auto& threads = host_table<cairn_threads_service>("cairn.threads");
  int object = 0;
  auto* const model = reinterpret_cast<cairn_model*>(&object);
  const auto nothing = [](void*) {};
  Queue queue;
  EXPECT_EQ(threads.post(model, nothing, &object), CAIRN_STATUS_NOT_FOUND);
  {
    const ModelRegistration registration(model, queue);
    EXPECT_EQ(threads.post(model, nothing, &object), CAIRN_STATUS_OK);
    EXPECT_EQ(threads.post(model, nullptr, &object), CAIRN_STATUS_INVALID_ARGUMENT);
    EXPECT_THROW(ModelRegistration(model, queue), InternalError);
  }
  EXPECT_EQ(threads.post(model, nothing, &object), CAIRN_STATUS_NOT_FOUND);
  EXPECT_EQ(queue.posted, (std::vector<void*>{&object}));
}

TEST(RandomService, IsAFunctionOfSeedAndOffset) {
  const auto& random = host_table<cairn_random_service>("cairn.random");
  std::vector<float> whole(1000);
  std::vector<float> tail(900);
  ASSERT_EQ(random.uniform(7, 0, whole.data(), whole.size()), CAIRN_STATUS_OK);
  ASSERT_EQ(random.uniform(7, 100, tail.data(), tail.size()), CAIRN_STATUS_OK);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), whole.begin() + 100));
  ASSERT_EQ(random.uniform(8, 0, tail.data(), tail.size()), CAIRN_STATUS_OK);
  EXPECT_FALSE(std::equal(tail.begin(), tail.end(), whole.begin()));
  ASSERT_EQ(random.normal(7, 0, whole.data(), whole.size()), CAIRN_STATUS_OK);
  ASSERT_EQ(random.normal(7, 100, tail.data(), tail.size()), CAIRN_STATUS_OK);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), whole.begin() + 100));
  EXPECT_EQ(random.uniform(7, 0, nullptr, 1), CAIRN_STATUS_INVALID_ARGUMENT);
}

// Means and variances of 100,000 draws lie within 6 standard errors of the distributions'.
TEST(RandomService, HasTheRightMoments) {
  const auto& random = host_table<cairn_random_service>("cairn.random");
  constexpr std::size_t kCount = 100000;
  std::vector<float> draws(kCount);
  const auto moments = [&] {
    double sum = 0;
    double squares = 0;
    for (const float x : draws)
      sum += static_cast<double>(x), squares += static_cast<double>(x) * static_cast<double>(x);
    const double mean = sum / kCount;
    return std::pair(mean, squares / kCount - mean * mean);
  };
  random.uniform(1, 0, draws.data(), kCount);
  EXPECT_TRUE(std::all_of(draws.begin(), draws.end(), [](float x) { return x >= 0.0F && x < 1.0F; }));
  EXPECT_NEAR(moments().first, 0.5, 6 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(moments().second, 1.0 / 12, 6 * std::sqrt(1.0 / 180 / kCount));
  random.normal(1, 0, draws.data(), kCount);
  EXPECT_NEAR(moments().first, 0.0, 6 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(moments().second, 1.0, 6 * std::sqrt(2.0 / kCount));
}

TEST(MetricsService, DefinesWhileLoadingAndCounts) {
  const auto& metrics = host_table<cairn_metrics_service>("cairn.metrics");
  cairn_metric* counter = nullptr;
  cairn_metric* gauge = nullptr;
  EXPECT_EQ(metrics.define(CAIRN_METRIC_COUNTER, to_abi_str("tiles_total"), to_abi_str("Tiles"), &counter),
            CAIRN_STATUS_FAILED_PRECONDITION);
  {
    const ThreadScope scope(ThreadContext{.loading = true});
    ASSERT_EQ(metrics.define(CAIRN_METRIC_COUNTER, to_abi_str("tiles_total"), to_abi_str("Tiles"), &counter),
              CAIRN_STATUS_OK);
    ASSERT_EQ(metrics.define(CAIRN_METRIC_GAUGE, to_abi_str("heat"), to_abi_str("Heat"), &gauge), CAIRN_STATUS_OK);
    cairn_metric* again = nullptr;
    EXPECT_EQ(metrics.define(CAIRN_METRIC_COUNTER, to_abi_str("tiles_total"), to_abi_str(""), &again), CAIRN_STATUS_OK);
    EXPECT_EQ(again, counter);
    EXPECT_EQ(metrics.define(CAIRN_METRIC_GAUGE, to_abi_str("tiles_total"), to_abi_str(""), &again),
              CAIRN_STATUS_ALREADY_EXISTS);
    for (const char* bad : {"", "9lives", "a-b", "a b", "\xC3\xA9"}) {
      EXPECT_EQ(metrics.define(CAIRN_METRIC_GAUGE, to_abi_str(bad), to_abi_str(""), &again),
                CAIRN_STATUS_INVALID_ARGUMENT)
          << bad;
    }
    EXPECT_EQ(metrics.define(7, to_abi_str("x"), to_abi_str(""), &again), CAIRN_STATUS_INVALID_ARGUMENT);
  }
  metrics.record(counter, 2.0);
  metrics.record(counter, 0.5);
  metrics.record(counter, -1.0);  // counters never fall
  metrics.record(counter, std::nan(""));
  metrics.record(gauge, 3.0);
  metrics.record(gauge, -4.0);
  metrics.record(nullptr, 1.0);
  double tiles = 0;
  double heat = 0;
  for (const PluginMetric& metric : plugin_metrics()) {
    if (metric.name == "cairn_plugin_tiles_total") tiles = metric.value;
    if (metric.name == "cairn_plugin_heat") heat = metric.value;
  }
  EXPECT_EQ(tiles, 2.5);
  EXPECT_EQ(heat, -4.0);
}

TEST(RequestService, KeepsStateForTheModelOfThisThread) {
  const auto& request = host_table<cairn_request_service>("cairn.request");
  int object = 0;
  auto* const node = reinterpret_cast<cairn_node*>(&object);
  cairn_value value{};
  value.kind = CAIRN_VALUE_INT;
  value.as.integer = 42;
  EXPECT_EQ(request.state_add(node, 1, to_abi_str("k"), &value), CAIRN_STATUS_FAILED_PRECONDITION);
  struct Cancellation : CancellationView {
    bool is_cancelled(cairn_request id) const noexcept override { return id == 5; }
  };
  const Cancellation cancellation;
  RequestStateStore store;
  const ThreadScope scope(ThreadContext{.request_state = &store, .cancellation = &cancellation});
  EXPECT_EQ(request.state_add(node, 1, to_abi_str("k"), &value), CAIRN_STATUS_OK);
  cairn_value back{};
  EXPECT_EQ(request.state_get(node, 1, to_abi_str("k"), &back), CAIRN_STATUS_OK);
  EXPECT_EQ(back.as.integer, 42);
  EXPECT_EQ(request.state_share(node, 1, to_abi_str("k")), CAIRN_STATUS_OK);
  EXPECT_EQ(request.state_share(node, 1, to_abi_str("other")), CAIRN_STATUS_NOT_FOUND);
  EXPECT_EQ(request.state_remove(node, 1, to_abi_str("k")), CAIRN_STATUS_OK);
  EXPECT_EQ(request.state_get(node, 1, to_abi_str("k"), &back), CAIRN_STATUS_NOT_FOUND);
  EXPECT_EQ(last_status_message(), "request.state_get: request 1 has no value 'k' on this node");
  EXPECT_EQ(request.state_add(nullptr, 1, to_abi_str("k"), &value), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(request.state_add(node, 1, to_abi_str("k"), nullptr), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(request.state_get(node, 1, to_abi_str("k"), nullptr), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(request.is_cancelled(5), 1U);
  EXPECT_EQ(request.is_cancelled(6), 0U);
}

TEST(UnsupportedServices, SayWhatToDoInstead) {
  const auto& media = host_table<cairn_media_service>("cairn.media");
  EXPECT_EQ(media.load_image({}, nullptr), CAIRN_STATUS_UNSUPPORTED);
  EXPECT_EQ(last_status_message(),
            "media.load_image: this host decodes no images, audio or video; decode them in the plugin");
  const auto& regions = host_table<cairn_region_service>("cairn.regions");
  EXPECT_EQ(regions.can_run(nullptr, 1, 1), 0U);
  EXPECT_EQ(regions.run(nullptr, nullptr, {}, nullptr, 0, {}, nullptr), CAIRN_STATUS_UNSUPPORTED);
  const auto& collectives = host_table<cairn_collective_service>("cairn.collectives");
  EXPECT_EQ(collectives.all_reduce(nullptr, nullptr, nullptr), CAIRN_STATUS_UNSUPPORTED);
  EXPECT_NE(last_status_message().find("one rank"), std::string_view::npos);
}

}  // namespace
}  // namespace cairn
