// Finds a request's stop strings in text that arrives in pieces, and never lets out text that may still turn out to be
// the beginning of one. One object per request, used by the thread that delivers output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

class StopMatcher {
 public:
  // Empty stop strings are ignored. With include_stop_str the matched stop string is part of the output.
  explicit StopMatcher(std::vector<std::string> stops, bool include_stop_str = false);

  // Takes the next piece of text; appends to `out` what is safe to send. Holds back at most the longest stop minus one
  // bytes. The match that ends first wins; among those ending at the same byte, the one that starts first (the
  // longest). Returns true once a stop was found: `out` then holds the text before it, and later pieces are dropped.
  bool push(std::string_view text, std::string& out);

  // The end of the text for any other reason: what was held back comes out. Nothing after a match.
  void flush(std::string& out);

  bool stopped() const { return matched_ >= 0; }
  // The stop string that was found; empty before.
  std::string_view matched() const {
    return matched_ < 0 ? std::string_view{} : std::string_view(stops_[static_cast<std::size_t>(matched_)]);
  }
  std::size_t held_back() const { return held_.size(); }

 private:
  // One node per distinct prefix of a stop string; the automaton's state is the longest such prefix that ends the text.
  struct Node {
    std::int32_t first_child = -1;
    std::int32_t next_sibling = -1;
    std::int32_t fail = 0;
    std::int32_t depth = 0;
    std::int32_t stop = -1;  // the longest stop that ends here, or -1
    char byte = 0;
  };
  std::int32_t child(std::int32_t node, char byte) const;

  std::vector<std::string> stops_;
  std::vector<Node> nodes_;
  std::string held_;  // the text of the current state: nodes_[state_].depth bytes
  std::int32_t state_ = 0;
  std::int32_t matched_ = -1;
  bool include_stop_str_;
};

}  // namespace cairn
