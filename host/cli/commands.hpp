// The commands of the cairn binary: what each takes, and a function that runs it and returns the exit code (0, or 1
// when it failed). Faults are thrown; main prints them. Standard output carries results only, everything else goes to
// standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cairn {

// Where models and plugins come from, the same for every command that runs a model.
struct ModelSource {
  std::vector<std::filesystem::path> plugins;  // folders
  std::filesystem::path model;                 // one of these three; with --plugin alone a plugin without weights
  std::filesystem::path models;
  std::filesystem::path config;
  std::string plugin;  // an id or a .so, for the model given by --model
  std::string served_name;
  std::optional<std::int64_t> max_seq_len;
  std::optional<std::int64_t> max_concurrent_requests;
  std::optional<std::int64_t> max_batch_tokens;
  std::optional<std::int64_t> max_queue;
  std::optional<std::int64_t> kv_cache_bytes;
  int threads = 0;
};

struct ServeOptions {
  ModelSource source;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;
  int io_threads = 1;
  std::size_t max_body_bytes = std::size_t{8} << 20;
  std::size_t max_connections = 4096;
  double drain_timeout_s = 30;
};
int run_serve(const ServeOptions& options);

// Sampling arguments as given; what is absent is the API's default.
struct RunOptions {
  ModelSource source;
  std::string prompt;  // empty: a conversation on the terminal
  std::string system;
  bool raw = false;  // the prompt as it is, without the chat template
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int64_t> top_k, seed, max_tokens;
  std::vector<std::string> stop;
};
int run_prompt(const RunOptions& options);

struct BenchOptions {
  ModelSource source;
  std::vector<int> streams{1, 4, 16};
  int prompt_tokens = 128;
  int output_tokens = 128;
  int prefill_tokens = 512;
  int repeats = 3;
  bool json = false;
};
int run_bench(const BenchOptions& options);

struct TokenizeOptions {
  std::filesystem::path model;
  bool no_special = false;
};
int run_tokenize(const TokenizeOptions& options);

struct DetokenizeOptions {
  std::filesystem::path model;
  bool skip_special = false;
};
int run_detokenize(const DetokenizeOptions& options);

struct TemplateOptions {
  std::filesystem::path model;
  std::filesystem::path template_file;
  std::filesystem::path messages;
  std::filesystem::path tools;
  std::optional<std::string> bos, eos;
  std::string now;
  bool no_generation_prompt = false;
};
int run_template(const TemplateOptions& options);

int run_plugins_list(const std::vector<std::filesystem::path>& folders);
int run_plugins_inspect(const std::filesystem::path& file);
int run_models(const std::filesystem::path& folder, bool json);

}  // namespace cairn
