// Arena blocks and the C entry that plugins call.
#include "core/plugin/arena.hpp"

#include <cstring>
#include <new>

namespace cairn {

namespace {
constexpr std::size_t kBlockAlignment = 64;
}

Arena::Arena(std::size_t block_bytes) noexcept : first_block_bytes_(block_bytes == 0 ? kBlockAlignment : block_bytes) {
  table_.struct_size = sizeof(cairn_arena);
  table_.alloc = alloc_for_plugin;
  table_.self = this;
}

Arena::~Arena() {
  release_tensors();
  for (const Block& block : blocks_) ::operator delete (block.data, std::align_val_t{kBlockAlignment});
}

void* Arena::alloc_for_plugin(cairn_arena* table, std::uint64_t size, std::uint64_t alignment) {
  Arena* arena = from_table(table);
  if (arena == nullptr) return nullptr;
  try {
    return arena->alloc(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Arena* Arena::from_table(cairn_arena* table) noexcept {
  if (table == nullptr || table->alloc != alloc_for_plugin) return nullptr;
  return static_cast<Table*>(table)->self;
}

void Arena::keep(Tensor* tensor) {
  auto* kept = static_cast<KeptTensor*>(alloc(sizeof(KeptTensor), alignof(KeptTensor)));
  kept_ = new (kept) KeptTensor{tensor, kept_};
}

void Arena::release_tensors() noexcept {
  for (KeptTensor* kept = kept_; kept != nullptr; kept = kept->next) kept->tensor->release();
  kept_ = nullptr;
}

void* Arena::alloc(std::size_t size, std::size_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kBlockAlignment || size > kMaxBytes) {
    throw std::bad_alloc();
  }
  while (block_ < blocks_.size()) {
    const Block& block = blocks_[block_];
    const std::size_t start = (offset_ + alignment - 1) & ~(alignment - 1);
    if (start <= block.size && size <= block.size - start) {
      offset_ = start + size;
      return block.data + start;
    }
    full_bytes_ += offset_;
    ++block_;
    offset_ = 0;
  }
  const std::size_t held = capacity();
  std::size_t wanted = held == 0 ? first_block_bytes_ : held;
  if (wanted < size) wanted = size;
  if (wanted == 0 || wanted > kMaxBytes - held) throw std::bad_alloc();
  blocks_.reserve(blocks_.size() + 1);
  auto* data = static_cast<std::byte*>(::operator new (wanted, std::align_val_t{kBlockAlignment}));
  blocks_.push_back({data, wanted});
  block_ = blocks_.size() - 1;
  offset_ = size;
  return data;
}

cairn_str Arena::copy(cairn_str text) {
  if (text.size == 0 || text.data == nullptr) return {nullptr, 0};
  auto* data = static_cast<char*>(alloc(text.size, 1));
  std::memcpy(data, text.data, text.size);
  return {data, text.size};
}

void Arena::reset() noexcept {
  release_tensors();
  block_ = 0;
  offset_ = 0;
  full_bytes_ = 0;
}

std::size_t Arena::used() const noexcept {
  return full_bytes_ + offset_;
}

std::size_t Arena::capacity() const noexcept {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.size;
  return total;
}

}  // namespace cairn
