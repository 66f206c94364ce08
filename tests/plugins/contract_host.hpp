// A host of a few lines for tests of plugins and of the SDK: an arena that poisons what it takes back, counted tensors,
// and the status service. No core.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/abi.h"

namespace contract {

inline std::string_view text(cairn_str value) {
  return {value.data, static_cast<std::size_t>(value.size)};
}
inline cairn_str str(std::string_view value) {
  return {value.data(), value.size()};
}

// An arena whose memory is overwritten when it ends, so that a pointer kept too long shows.
class Arena : public cairn_arena {
 public:
  Arena() : cairn_arena{sizeof(cairn_arena), &Arena::allocate} {}
  ~Arena() {
    for (auto& block : blocks_) std::memset(block.memory.get(), 0xdd, block.size);
  }
  // After this many more allocations the arena is out of memory.
  void fail_after(int allocations) { left_ = allocations; }

 private:
  static void* allocate(cairn_arena* self, std::uint64_t size, std::uint64_t alignment) {
    auto& arena = *static_cast<Arena*>(self);
    if (arena.left_ == 0) return nullptr;
    --arena.left_;
    Block block{std::make_unique<char[]>(size + alignment), size + alignment};
    const auto address = reinterpret_cast<std::uintptr_t>(block.memory.get());
    std::memset(block.memory.get(), 0xcd, block.size);  // uninitialised is not zero
    arena.blocks_.push_back(std::move(block));
    return reinterpret_cast<void*>((address + alignment - 1) / alignment * alignment);
  }
  struct Block {
    std::unique_ptr<char[]> memory;
    std::size_t size;
  };
  std::vector<Block> blocks_;
  int left_ = -1;
};

// The only kind of tensor these tests need: int32 or float32 of one dimension.
struct HostTensor {
  std::vector<std::int32_t> values;
  std::int64_t shape[1];
  int references = 1;

  explicit HostTensor(std::vector<std::int32_t> ids)
      : values(std::move(ids)), shape{static_cast<std::int64_t>(values.size())} {}
  cairn_tensor_view view() {
    return {values.data(), {CAIRN_DEVICE_CPU, 0}, 1, {CAIRN_DTYPE_INT, 32, 1}, shape, nullptr, 0, 0, handle()};
  }
  cairn_tensor* handle() { return reinterpret_cast<cairn_tensor*>(this); }
  static HostTensor& of(cairn_tensor* tensor) { return *reinterpret_cast<HostTensor*>(tensor); }
};

inline std::string& last_message() {
  static std::string message;
  return message;
}

inline const cairn_status_service* status_service() {
  static const cairn_status_service service = {sizeof(cairn_status_service),
                                               [](cairn_status code, cairn_str message) {
                                                 last_message() = text(message);
                                                 return code;
                                               },
                                               [](cairn_str, cairn_str) {}, [] { return str(last_message()); }};
  return &service;
}

inline const cairn_tensor_service* tensor_service() {
  static const cairn_tensor_service service = [] {
    cairn_tensor_service table{};
    table.struct_size = CAIRN_SIZE(cairn_tensor_service, wrap);  // a host that does not know give
    table.retain = [](cairn_tensor* tensor) { ++HostTensor::of(tensor).references; };
    table.release = [](cairn_tensor* tensor) {
      if (tensor != nullptr) --HostTensor::of(tensor).references;
    };
    table.view = [](cairn_tensor* tensor, cairn_tensor_view* out) {
      *out = HostTensor::of(tensor).view();
      return CAIRN_STATUS_OK + 0;
    };
    return table;
  }();
  return &service;
}

// What cairn_plugin_entry and init receive.
inline const cairn_host* host() {
  static const cairn_host instance = {sizeof(cairn_host), CAIRN_ABI_MAJOR, CAIRN_ABI_MINOR,
                                      [](const cairn_host*, cairn_str id, std::uint32_t) -> const void* {
                                        if (text(id) == CAIRN_STATUS_INTERFACE) return status_service();
                                        if (text(id) == CAIRN_TENSOR_INTERFACE) return tensor_service();
                                        return nullptr;
                                      },
                                      str("contract host")};
  return &instance;
}

}  // namespace contract
