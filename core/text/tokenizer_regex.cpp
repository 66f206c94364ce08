// Compiling and searching with PCRE2: JIT first, the interpreter where the JIT's stack does not suffice.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/text/tokenizer_regex.hpp"

#include <pcre2.h>

#include <array>
#include <ctime>

#include "core/base/error.hpp"
#include "core/text/tokenizer_vocab.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

namespace {

constexpr std::size_t kMaxPatternBytes = 64 * 1024;
// Per search. Published patterns need a few steps per character of one word.
constexpr std::uint32_t kMatchLimit = 50'000'000;
constexpr std::uint32_t kHeapLimitKib = 512 * 1024;
constexpr std::size_t kJitStackBytes = 4u << 20;
constexpr std::size_t kStartsPerLook = 64 * 1024;
// Published patterns need under 0.2 microseconds per byte.
constexpr std::int64_t kBudgetNs = 2'000'000'000;
constexpr std::int64_t kBudgetNsPerByte = 2'000;

// What one thread needs for searching, made at its first search.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);

  Scratch() {
    if (data == nullptr || context == nullptr) throw InternalError("No memory for the regular expression matcher.");
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

std::string message_of(int code) {
  std::array<unsigned char, 160> text{};
  if (pcre2_get_error_message(code, text.data(), text.size()) < 0) return "error " + std::to_string(code);
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view ruby_pattern, std::string_view key) : code_(std::make_unique<Code>()) {
  if (ruby_pattern.size() > kMaxPatternBytes) {
    throw BadFile(std::string(key) + ": the pattern is " + std::to_string(ruby_pattern.size()) +
                  " bytes long, more than the " + std::to_string(kMaxPatternBytes) + " allowed.");
  }
  std::string pattern;
  try {
    pattern = translate_pattern(ruby_pattern);
  } catch (const BadFile& e) {
    throw BadFile(std::string(key) + ": pattern " + quote_token(ruby_pattern) + ": " + e.what());
  }
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (context == nullptr) throw InternalError("No memory for the regular expression compiler.");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  std::size_t offset = 0;
  code_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &error,
                    &offset, context.get());
  if (code_->code == nullptr) {
    throw BadFile(std::string(key) + ": pattern " + quote_token(ruby_pattern) +
                  " does not compile: " + message_of(error) + " at " + std::to_string(offset) + " of its translation " +
                  quote_token(pattern) + ".");
  }
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);  // without the JIT the interpreter is used
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::size_t Regex::step(std::string_view subject, std::size_t pos) {
  return pos < subject.size() ? pos + unicode::length_of(subject[pos]) : pos + 1;
}

void SearchBudget::check() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  if (started_ns_ < 0) started_ns_ = now_ns;
  const std::int64_t allowed = kBudgetNs + kBudgetNsPerByte * static_cast<std::int64_t>(text_bytes_);
  if (now_ns - started_ns_ > allowed) {
    throw InvalidArgument("Splitting the text (" + std::to_string(text_bytes_) +
                          " bytes in one piece) into words took over " + std::to_string(allowed / 1'000'000) +
                          " ms with the tokenizer's pattern. Send it in smaller parts or as token ids.");
  }
}

std::optional<std::pair<std::size_t, std::size_t>> Regex::find(std::string_view subject, std::size_t from,
                                                               SearchBudget& budget) const {
  thread_local Scratch scratch;
  const auto* text = reinterpret_cast<PCRE2_SPTR>(subject.data());
  // So many start positions are tried between two looks at the clock.
  for (std::size_t start = from;;) {
    std::size_t limit = subject.size() - start > kStartsPerLook ? start + kStartsPerLook : subject.size();
    while (limit < subject.size() && (static_cast<unsigned char>(subject[limit]) & 0xC0) == 0x80) --limit;
    pcre2_set_offset_limit(scratch.context, limit);
    int rc = pcre2_match(code_->code, text, subject.size(), start, PCRE2_NO_UTF_CHECK, scratch.data, scratch.context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
      rc = pcre2_match(code_->code, text, subject.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, scratch.data,
                       scratch.context);
    }
    if (rc == PCRE2_ERROR_NOMATCH) {
      if (limit == subject.size()) return std::nullopt;
      budget.check();
      start = step(subject, limit);
      continue;
    }
    if (rc < 0) {
      throw InvalidArgument("The text (" + std::to_string(subject.size()) +
                            " bytes in one piece) cannot be split into words by the tokenizer's pattern: " +
                            message_of(rc) + ". Send it in smaller parts or as token ids.");
    }
    const std::size_t* ends = pcre2_get_ovector_pointer(scratch.data);
    if (ends[1] < ends[0]) return std::nullopt;  // \K inside a look-ahead can turn a match around
    return std::pair{ends[0], ends[1]};
  }
}

}  // namespace cairn
