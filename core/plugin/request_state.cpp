// Values by request, then node and key; a request has few, so they are searched in order.
#include "core/plugin/request_state.hpp"

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/plugin/owned_value.hpp"

namespace cairn {

namespace {

constexpr std::size_t kMaxKeyBytes = 256;
constexpr std::size_t kMaxValuesPerRequest = 4096;

struct Entry {
  const cairn_node* node = nullptr;
  std::string key;
  OwnedValue value;
};

Entry* find(std::vector<Entry>& entries, const cairn_node* node, std::string_view key) {
  for (Entry& entry : entries) {
    if (entry.node == node && entry.key == key) return &entry;
  }
  return nullptr;
}

}  // namespace

struct RequestStateStore::Impl {
  mutable std::mutex mutex;
  std::unordered_map<cairn_request, std::vector<Entry>> requests;
};

RequestStateStore::RequestStateStore() : impl_(std::make_unique<Impl>()) {}
RequestStateStore::~RequestStateStore() = default;

// Everywhere below, what is dropped is destroyed after the lock is given back: an opaque object's destroy may call in
// here again.
void RequestStateStore::add(const cairn_node* node, cairn_request request, std::string_view key,
                            const cairn_value& value) {
  if (key.empty() || key.size() > kMaxKeyBytes) {
    throw InvalidArgument(fmt::format("a key of {} bytes; 1 to {} are allowed", key.size(), kMaxKeyBytes));
  }
  OwnedValue old;
  const std::lock_guard lock(impl_->mutex);
  auto& entries = impl_->requests[request];
  if (Entry* entry = find(entries, node, key)) {
    old = OwnedValue(value);
    std::swap(entry->value, old);
    return;
  }
  if (entries.size() >= kMaxValuesPerRequest) {
    throw ResourceExhausted(fmt::format("request {} has {} values already", request, kMaxValuesPerRequest));
  }
  // Room first: once an opaque object is taken over nothing may fail.
  Entry& entry = entries.emplace_back(Entry{.node = node, .key = std::string(key), .value = {}});
  try {
    entry.value = OwnedValue(value);
  } catch (...) {
    entries.pop_back();
    throw;
  }
}

cairn_value RequestStateStore::get(const cairn_node* node, cairn_request request, std::string_view key) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->requests.find(request);
  Entry* entry = found == impl_->requests.end() ? nullptr : find(found->second, node, key);
  if (entry == nullptr) throw NotFound(fmt::format("request {} has no value '{}' on this node", request, key));
  return entry->value.get();
}

void RequestStateStore::remove(const cairn_node* node, cairn_request request, std::string_view key) {
  OwnedValue old;
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->requests.find(request);
  Entry* entry = found == impl_->requests.end() ? nullptr : find(found->second, node, key);
  if (entry == nullptr) throw NotFound(fmt::format("request {} has no value '{}' on this node", request, key));
  std::swap(old, entry->value);
  std::swap(*entry, found->second.back());
  found->second.pop_back();
}

void RequestStateStore::drop_request(cairn_request request) noexcept {
  std::vector<Entry> old;
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->requests.find(request);
  if (found == impl_->requests.end()) return;
  old.swap(found->second);
  impl_->requests.erase(found);
}

void RequestStateStore::drop_node(const cairn_node* node) noexcept {
  // One value at a time, so that each is destroyed outside of the lock.
  const auto take_one = [&](OwnedValue& taken) {
    const std::lock_guard lock(impl_->mutex);
    for (auto& [request, entries] : impl_->requests) {
      for (Entry& entry : entries) {
        if (entry.node != node) continue;
        std::swap(taken, entry.value);
        std::swap(entry, entries.back());
        entries.pop_back();
        return true;
      }
    }
    return false;
  };
  for (bool found = true; found;) {
    OwnedValue old;
    found = take_one(old);
  }
}

std::int64_t RequestStateStore::live_values() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  std::int64_t count = 0;
  for (const auto& [request, entries] : impl_->requests) count += static_cast<std::int64_t>(entries.size());
  return count;
}

}  // namespace cairn
