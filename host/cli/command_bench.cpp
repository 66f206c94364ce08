// cairn bench: tokens per second of a model in this process, without HTTP.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>

#include "core/base/error.hpp"
#include "host/cli/commands.hpp"
#include "host/cli/model_loading.hpp"
#include "host/cli/request_output.hpp"
#include "host/openai/json_writer.hpp"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchRow {
  std::string name;
  double tokens_per_second = 0;  // the median of the repeats
};

// The same ids on every run, spread over the vocabulary.
std::vector<std::int32_t> prompt_ids(int count, std::int64_t vocab_size, int salt) {
  std::vector<std::int32_t> ids;
  std::uint64_t state = 0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(salt + 1);
  for (int i = 0; i < count; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    ids.push_back(static_cast<std::int32_t>((state >> 33U) % static_cast<std::uint64_t>(vocab_size)));
  }
  return ids;
}

struct Load {
  int streams;
  int prompt_tokens;
  int output_tokens;
};

struct Times {
  double to_first_token = 0;  // until the last stream has its first token
  double total = 0;
};

Times run_load(ModelRuntime& runtime, const Load& load, int salt) {
  const auto begin = Clock::now();
  std::vector<std::shared_ptr<RequestOutput>> outputs;
  for (int i = 0; i < load.streams; ++i) {
    RequestSpec spec;
    spec.id = "bench-" + std::to_string(i);
    spec.prompt_ids = prompt_ids(load.prompt_tokens, runtime.describe().vocab_size, salt * 1000 + i);
    spec.sampling.temperature = 0;
    spec.max_tokens = load.output_tokens;
    spec.ignore_eos = true;
    outputs.push_back(std::make_shared<RequestOutput>());
    runtime.submit(std::move(spec), outputs.back()->make_sink());
  }
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Times times;
  for (const auto& output : outputs) {
    TokenBatch batch;
    bool first = true;
    while (!batch.result) {
      batch.clear();
      output->wait(batch);
      if (first) times.to_first_token = std::max(times.to_first_token, seconds());
      first = false;
      if (batch.result && batch.result->reason == FinishReason::kError) throw InternalError(batch.result->error);
    }
  }
  times.total = seconds();
  return times;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int run_bench(const BenchOptions& options) {
  const auto models = load_models(options.source);
  if (models.size() != 1) throw InvalidArgument("`cairn bench` takes one model; the source names several.", "model");
  ModelRuntime& runtime = *models.front().runtime;
  std::vector<BenchRow> rows;
  int salt = 0;
  run_load(runtime, {.streams = 1, .prompt_tokens = 16, .output_tokens = 8}, salt++);  // pages in the weights

  std::vector<double> prefill;
  for (int i = 0; i < options.repeats; ++i) {
    const Times times =
        run_load(runtime, {.streams = 1, .prompt_tokens = options.prefill_tokens, .output_tokens = 1}, salt++);
    prefill.push_back(options.prefill_tokens / times.to_first_token);
  }
  rows.push_back({"prefill of " + std::to_string(options.prefill_tokens) + " tokens", median(prefill)});

  for (const int streams : options.streams) {
    std::vector<double> rates;
    for (int i = 0; i < options.repeats; ++i) {
      const Times times = run_load(
          runtime, {.streams = streams, .prompt_tokens = options.prompt_tokens, .output_tokens = options.output_tokens},
          salt++);
      rates.push_back(static_cast<double>(streams) * options.output_tokens / times.total);
    }
    rows.push_back({std::to_string(streams) + (streams == 1 ? " stream" : " streams") + " of " +
                        std::to_string(options.output_tokens) + " tokens after " +
                        std::to_string(options.prompt_tokens),
                    median(rates)});
  }

  if (options.json) {
    std::string out;
    JsonWriter json(out);
    json.begin_array();
    for (const auto& row : rows) {
      json.begin_object().field("name", row.name).key("tokens_per_second").number(row.tokens_per_second).end_object();
    }
    json.end_array();
    std::cout << out << '\n';
    return 0;
  }
  for (const auto& row : rows) {
    std::cout << std::left << std::setw(44) << row.name << std::right << std::fixed << std::setprecision(1)
              << std::setw(10) << row.tokens_per_second << " tokens/s\n";
  }
  return 0;
}

}  // namespace cairn
