// Regular expressions of tokenizer files: written for Oniguruma's Ruby dialect (what Hugging Face's reference runs),
// translated to PCRE2 and compiled with its JIT. Used by the pre-tokenizers, normalizers and decoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cairn {

// The same pattern in PCRE2's dialect (see the .cpp for what differs). Throws BadFile for syntax that has no equal.
std::string translate_pattern(std::string_view ruby);

// The processor time that searching one text may take: a pattern from a file can be made to need quadratic time.
class SearchBudget {
 public:
  explicit SearchBudget(std::size_t text_bytes) : text_bytes_(text_bytes) {}
  // Cheap; looks at the clock now and then. Throws InvalidArgument when the time is used up.
  void count_search() {
    if (++searches_ % 1024 == 0) check();
  }
  void check();

 private:
  std::size_t text_bytes_;
  std::uint32_t searches_ = 0;
  std::int64_t started_ns_ = -1;  // at the first check: most texts never get there
};

// Immutable; any thread may search. Subjects must be valid UTF-8.
class Regex {
 public:
  // `key` names the place in the file, for the message of the BadFile that a bad pattern throws.
  Regex(std::string_view ruby_pattern, std::string_view key);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The leftmost match that starts at or after `from`, as [begin, end). Throws InvalidArgument when the search takes
  // more steps or memory than allowed.
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view subject, std::size_t from,
                                                          SearchBudget& budget) const;
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view subject, std::size_t from) const {
    SearchBudget budget(subject.size());
    return find(subject, from, budget);
  }

  // Calls found(begin, end) for each match, left to right. An empty match right behind another match does not count.
  template <class F>
  void for_each(std::string_view subject, F&& found) const {
    std::size_t from = 0;
    std::size_t last_end = std::string_view::npos;
    SearchBudget budget(subject.size());
    while (from <= subject.size()) {
      budget.count_search();
      const auto match = find(subject, from, budget);
      if (!match) return;
      const auto [begin, end] = *match;
      if (begin == end && end == last_end) {
        from = step(subject, end);
        continue;
      }
      from = last_end = end;
      found(begin, end);
    }
  }

 private:
  struct Code;
  static std::size_t step(std::string_view subject, std::size_t pos);  // one character further, or past the end
  std::unique_ptr<Code> code_;
};

}  // namespace cairn
