// The cairn binary: reads the command line with CLI11 and runs one command. Exit codes: 0 done, 1 failed, 2 the command
// line is wrong.
#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "host/cli/commands.hpp"
#include "host/openai/version.hpp"

namespace {

using namespace cairn;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

using Action = std::function<int()>;

void add_source_options(CLI::App& app, ModelSource& source, bool several) {
  app.add_option("--plugins", source.plugins, "Folder with plugins (.so); may be given more than once")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  auto* model = app.add_option("--model", source.model,
                               "Model to load: a GGUF file, a .safetensors file or a Hugging Face folder")
                    ->type_name("FILE")
                    ->check(CLI::ExistingPath);
  auto* config = app.add_option("--config", source.config, "Deployment file (YAML)")
                     ->type_name("FILE")
                     ->check(CLI::ExistingFile)
                     ->excludes(model);
  if (several) {
    app.add_option("--models", source.models, "Folder of models: all of them are served")
        ->type_name("DIR")
        ->check(CLI::ExistingDirectory)
        ->excludes(model)
        ->excludes(config);
  }
  app.add_option("--plugin", source.plugin,
                 "Plugin to use: an id or a .so file; default: the first that takes the model");
  app.add_option("--served-name", source.served_name, "Name that clients use; default: the file's name")->needs(model);
  app.add_option("--threads", source.threads, "Threads of the compute pool; default: from the machine")
      ->check(CLI::Range(1, 1024));
  app.add_option("--max-seq-len", source.max_seq_len, "Longest prompt plus output, in tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  app.add_option("--max-concurrent-requests", source.max_concurrent_requests, "Requests that run at a time")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}));
  app.add_option("--max-batch-tokens", source.max_batch_tokens, "Token budget of one step")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  app.add_option("--max-queue", source.max_queue, "Requests that may wait; more are told 429")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000}));
  app.add_option("--kv-cache-bytes", source.kv_cache_bytes, "Size of the KV cache; default: from free memory")
      ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()));
}

// The check that CLI11 cannot express: something to load is named.
void require_source(const ModelSource& source) {
  if (source.model.empty() && source.models.empty() && source.config.empty() && source.plugin.empty()) {
    throw CLI::RequiredError("--model, --models, --config or --plugin");
  }
}

void add_serve(CLI::App& root, Action& action) {
  auto* app = root.add_subcommand("serve", "Serve models over HTTP with the OpenAI API");
  auto options = std::make_shared<ServeOptions>();
  add_source_options(*app, options->source, true);
  app->add_option("--host", options->host, "Address to listen on; 0.0.0.0 opens the server to the network")
      ->capture_default_str();
  app->add_option("--port", options->port, "Port; 0 takes a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app->add_option("--io-threads", options->io_threads, "Threads that serve connections")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("--max-body-bytes", options->max_body_bytes, "Largest request body")
      ->check(CLI::Range(std::size_t{1024}, std::size_t{1} << 30))
      ->capture_default_str();
  app->add_option("--max-connections", options->max_connections, "Most client connections")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}))
      ->capture_default_str();
  app->add_option("--drain-timeout", options->drain_timeout_s, "Seconds that open requests get to end after SIGTERM")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app->final_callback([options, &action] {
    require_source(options->source);
    action = [options] { return run_serve(*options); };
  });
}

void add_run(CLI::App& root, Action& action) {
  auto* app = root.add_subcommand("run", "Answer a prompt on the terminal, or hold a conversation without one");
  auto options = std::make_shared<RunOptions>();
  app->add_option("prompt", options->prompt,
                  "The prompt; without it messages are read from standard input, line by line");
  add_source_options(*app, options->source, false);
  app->add_option("--system", options->system, "System message");
  app->add_flag("--raw", options->raw, "Continue the prompt as it is, without the chat template");
  app->add_option("--temperature", options->temperature, "0 to 2; 0 is greedy");
  app->add_option("--top-p", options->top_p, "Over 0, up to 1");
  app->add_option("--top-k", options->top_k, "0 is off");
  app->add_option("--min-p", options->min_p, "0 to 1");
  app->add_option("--repetition-penalty", options->repetition_penalty, "Over 0; 1 is off");
  app->add_option("--seed", options->seed, "The same seed gives the same answer");
  app->add_option("--max-tokens", options->max_tokens, "Most tokens of an answer");
  app->add_option("--stop", options->stop, "Text that ends the answer; may be given more than once");
  app->final_callback([options, &action] {
    require_source(options->source);
    action = [options] { return run_prompt(*options); };
  });
}

void add_bench(CLI::App& root, Action& action) {
  auto* app = root.add_subcommand("bench", "Measure a model's tokens per second in this process, without HTTP");
  auto options = std::make_shared<BenchOptions>();
  add_source_options(*app, options->source, false);
  app->add_option("--streams", options->streams, "Numbers of requests at a time")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--prompt-tokens", options->prompt_tokens, "Prompt of each stream")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--output-tokens", options->output_tokens, "Output of each stream")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--prefill-tokens", options->prefill_tokens, "Prompt of the prefill measurement")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--repeats", options->repeats, "The median of so many runs is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_flag("--json", options->json, "Print JSON");
  app->final_callback([options, &action] {
    require_source(options->source);
    action = [options] { return run_bench(*options); };
  });
}

void add_text_commands(CLI::App& root, Action& action) {
  auto* tokenize =
      root.add_subcommand("tokenize", "Read text from standard input, print its token ids as a JSON array");
  auto to_ids = std::make_shared<TokenizeOptions>();
  tokenize->add_option("--model", to_ids->model, "File or folder with the vocabulary")
      ->required()
      ->type_name("FILE")
      ->check(CLI::ExistingPath);
  tokenize->add_flag("--no-special", to_ids->no_special, "Do not add the tokens that start or end a text");
  tokenize->final_callback([to_ids, &action] { action = [to_ids] { return run_tokenize(*to_ids); }; });

  auto* detokenize =
      root.add_subcommand("detokenize", "Read a JSON array of token ids from standard input, print their text");
  auto to_text = std::make_shared<DetokenizeOptions>();
  detokenize->add_option("--model", to_text->model, "File or folder with the vocabulary")
      ->required()
      ->type_name("FILE")
      ->check(CLI::ExistingPath);
  detokenize->add_flag("--skip-special", to_text->skip_special, "Leave special tokens out");
  detokenize->final_callback([to_text, &action] { action = [to_text] { return run_detokenize(*to_text); }; });

  auto* render = root.add_subcommand("template", "Print the prompt that a chat template makes of messages");
  auto options = std::make_shared<TemplateOptions>();
  auto* model = render->add_option("--model", options->model, "Model that carries the template")
                    ->type_name("FILE")
                    ->check(CLI::ExistingPath);
  auto* file = render->add_option("--template", options->template_file, "File with the template's source")
                   ->type_name("FILE")
                   ->check(CLI::ExistingFile)
                   ->excludes(model);
  render->add_option("--messages", options->messages, "JSON file: an array of messages")
      ->required()
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  render->add_option("--tools", options->tools, "JSON file: an array of tools")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  render->add_option("--bos", options->bos, "Text of bos_token; default: the model's");
  render->add_option("--eos", options->eos, "Text of eos_token; default: the model's");
  render
      ->add_option("--now", options->now,
                   "Time for strftime_now: seconds since the epoch or UTC like 2024-07-26T12:30:00")
      ->type_name("TIME");
  render->add_flag("--no-generation-prompt", options->no_generation_prompt, "Leave out the beginning of the answer");
  render->final_callback([options, model, file, &action] {
    if (model->count() + file->count() == 0) throw CLI::RequiredError("--model or --template");
    action = [options] { return run_template(*options); };
  });
}

void add_listing_commands(CLI::App& root, Action& action) {
  auto* plugins = root.add_subcommand("plugins", "Look at plugins without loading them")->require_subcommand(1);
  auto* list = plugins->add_subcommand("list", "List the plugins of a folder");
  auto folders = std::make_shared<std::vector<std::filesystem::path>>();
  list->add_option("--plugins", *folders, "Folder with plugins; may be given more than once")
      ->required()
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  list->final_callback([folders, &action] { action = [folders] { return run_plugins_list(*folders); }; });
  auto* inspect = plugins->add_subcommand("inspect", "Show the identity note of a plugin file");
  auto file = std::make_shared<std::filesystem::path>();
  inspect->add_option("file", *file, "The .so file")->required()->type_name("FILE")->check(CLI::ExistingFile);
  inspect->final_callback([file, &action] { action = [file] { return run_plugins_inspect(*file); }; });

  auto* models = root.add_subcommand("models", "List the models of a folder");
  auto folder = std::make_shared<std::filesystem::path>();
  auto json = std::make_shared<bool>(false);
  models->add_option("--models", *folder, "Folder with models")
      ->required()
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  models->add_flag("--json", *json, "Print JSON");
  models->final_callback([folder, json, &action] { action = [folder, json] { return run_models(*folder, *json); }; });

  auto* version = root.add_subcommand("version", "Print the version");
  version->final_callback([&action] {
    action = [] {
      std::cout << "cairn " << kVersion << '\n';
      return 0;
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App root("Cairn serves models: each comes as a plugin, clients speak the OpenAI API.", "cairn");
  root.require_subcommand(1);
  root.fallthrough();
  root.set_version_flag("--version", std::string("cairn ") + kVersion);
  std::string log_level = "info";
  bool log_json = false;
  root.add_option("--log-level", log_level, "trace, debug, info, warning or error")->capture_default_str();
  root.add_flag("--log-json", log_json, "Log JSON lines");
  Action action;
  add_serve(root, action);
  add_run(root, action);
  add_text_commands(root, action);
  add_listing_commands(root, action);
  add_bench(root, action);
  try {
    root.parse(argc, argv);
    configure_logging(log_level, log_json);
  } catch (const CLI::ParseError& error) {
    return root.exit(error) == 0 ? 0 : kUsage;
  } catch (const InvalidArgument& error) {
    std::cerr << "cairn: " << error.what() << '\n';
    return kUsage;
  }
  try {
    return action();
  } catch (const std::exception& error) {
    std::cerr << "cairn: " << error.what() << '\n';
    return kFailed;
  }
}
