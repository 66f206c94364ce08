// An Aho-Corasick automaton over the stop strings, whose state is exactly the text that must be held back.
#include "core/text/stop_matcher.hpp"

#include <utility>

namespace cairn {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include_stop_str)
    : stops_(std::move(stops)), nodes_(1), include_stop_str_(include_stop_str) {
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    if (stops_[i].empty()) continue;
    std::int32_t node = 0;
    for (const char byte : stops_[i]) {
      std::int32_t next = child(node, byte);
      if (next < 0) {
        next = static_cast<std::int32_t>(nodes_.size());
        Node& parent = nodes_[static_cast<std::size_t>(node)];
        Node made;
        made.next_sibling = parent.first_child;
        made.depth = parent.depth + 1;
        made.byte = byte;
        parent.first_child = next;
        nodes_.push_back(made);
      }
      node = next;
    }
    std::int32_t& stop = nodes_[static_cast<std::size_t>(node)].stop;
    if (stop < 0) stop = static_cast<std::int32_t>(i);
  }
  // Breadth first: a node's fall-back is shorter than the node, so it is ready before.
  std::vector<std::int32_t> queue{0};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::int32_t node = queue[head];
    for (std::int32_t c = nodes_[static_cast<std::size_t>(node)].first_child; c >= 0;
         c = nodes_[static_cast<std::size_t>(c)].next_sibling) {
      Node& made = nodes_[static_cast<std::size_t>(c)];
      std::int32_t fail = node == 0 ? -1 : nodes_[static_cast<std::size_t>(node)].fail;
      std::int32_t target = 0;
      while (fail >= 0) {
        const std::int32_t next = child(fail, made.byte);
        if (next >= 0) {
          target = next;
          break;
        }
        fail = fail == 0 ? -1 : nodes_[static_cast<std::size_t>(fail)].fail;
      }
      made.fail = target;
      if (made.stop < 0) made.stop = nodes_[static_cast<std::size_t>(target)].stop;
      queue.push_back(c);
    }
  }
}

std::int32_t StopMatcher::child(std::int32_t node, char byte) const {
  std::int32_t c = nodes_[static_cast<std::size_t>(node)].first_child;
  while (c >= 0 && nodes_[static_cast<std::size_t>(c)].byte != byte)
    c = nodes_[static_cast<std::size_t>(c)].next_sibling;
  return c;
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (stopped()) return true;
  for (const char byte : text) {
    std::int32_t next = child(state_, byte);
    while (next < 0 && state_ != 0) {
      state_ = nodes_[static_cast<std::size_t>(state_)].fail;
      next = child(state_, byte);
    }
    state_ = next < 0 ? 0 : next;
    held_.push_back(byte);
    const Node& node = nodes_[static_cast<std::size_t>(state_)];
    if (node.stop >= 0) {
      matched_ = node.stop;
      const std::size_t stop_bytes = stops_[static_cast<std::size_t>(matched_)].size();
      out.append(held_, 0, include_stop_str_ ? held_.size() : held_.size() - stop_bytes);
      held_.clear();
      return true;
    }
    // What is longer than the state cannot become part of a match any more.
    const auto keep = static_cast<std::size_t>(node.depth);
    if (held_.size() > keep) {
      out.append(held_, 0, held_.size() - keep);
      held_.erase(0, held_.size() - keep);
    }
  }
  return false;
}

void StopMatcher::flush(std::string& out) {
  out.append(held_);
  held_.clear();
  state_ = 0;
}

}  // namespace cairn
