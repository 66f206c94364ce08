// "cairn.tensor" and "cairn.memory" over core/tensor.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/plugin/arena.hpp"
#include "core/plugin/host_services.hpp"
#include "core/plugin/plugin_mapping.hpp"
#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"
#include "core/tensor/tensor.hpp"

namespace cairn {

namespace {

void require_cpu(cairn_device device) {
  if (device.type != CAIRN_DEVICE_CPU || device.index != 0) {
    throw NotSupported(
        fmt::format("this host has no device of type {} index {}; use CAIRN_DEVICE_CPU", device.type, device.index));
  }
}

cairn_status create(cairn_dtype dtype, const std::int64_t* shape, std::int32_t ndim, cairn_device device,
                    cairn_tensor** out_owned) {
  return guard("tensor.create", [&] {
    if (out_owned == nullptr) throw InvalidArgument("out_owned is NULL");
    if (ndim < 0 || (shape == nullptr && ndim > 0)) {
      throw InvalidArgument(fmt::format("ndim is {} and shape {}", ndim, shape == nullptr ? "NULL" : "given"));
    }
    require_cpu(device);
    *out_owned = Tensor::create(dtype, {shape, static_cast<std::size_t>(ndim)}).release()->handle();
  });
}

cairn_status view(cairn_tensor* tensor, cairn_tensor_view* out) {
  if (tensor == nullptr || out == nullptr)
    return set_status(CAIRN_STATUS_INVALID_ARGUMENT, "tensor.view: NULL argument");
  *out = Tensor::from_handle(tensor)->view();
  return CAIRN_STATUS_OK;
}

cairn_status slice(cairn_tensor* tensor, std::int64_t start, std::int64_t end, cairn_tensor** out_owned) {
  return guard("tensor.slice", [&] {
    if (tensor == nullptr || out_owned == nullptr) throw InvalidArgument("tensor or out_owned is NULL");
    *out_owned = Tensor::slice(*Tensor::from_handle(tensor), start, end).release()->handle();
  });
}

// Keeps the plugin's code mapped until its destroy function has run.
struct ForeignMemory {
  void (*destroy)(void*);
  void* context;
  std::shared_ptr<const void> library;
};

cairn_status wrap(const cairn_tensor_view* foreign, void (*destroy)(void*), void* context, cairn_tensor** out_owned) {
  return guard("tensor.wrap", [&] {
    if (foreign == nullptr || out_owned == nullptr) throw InvalidArgument("view or out_owned is NULL");
    if (destroy == nullptr) {
      *out_owned = Tensor::wrap(*foreign, nullptr, nullptr).release()->handle();
      return;
    }
    auto memory = std::make_unique<ForeignMemory>(
        ForeignMemory{destroy, context, pin_library_of(reinterpret_cast<const void*>(destroy))});
    const auto give_back = [](void* opaque) {
      const std::unique_ptr<ForeignMemory> owned(static_cast<ForeignMemory*>(opaque));
      owned->destroy(owned->context);
    };
    *out_owned = Tensor::wrap(*foreign, give_back, memory.get()).release()->handle();
    (void)memory.release();
  });
}

void give(cairn_arena* table, cairn_tensor* tensor) {
  if (tensor == nullptr) return;
  try {
    if (Arena* arena = Arena::from_table(table)) return arena->keep(Tensor::from_handle(tensor));
    log(LogLevel::kError, "plugin", "tensor.give was called with an arena that is not the host's; the tensor leaks.");
  } catch (const std::bad_alloc&) {
    // Releasing it would leave the plugin's views of it dangling; a leak is the lesser harm.
    log(LogLevel::kError, "plugin", "tensor.give found no memory to remember the tensor; it leaks.");
  }
}

// In front of every allocation of "cairn.memory"; as large as the largest alignment, so that it keeps the payload's.
struct alignas(64) MemoryHeader {
  void* block;
  std::uint64_t size;
  std::shared_ptr<MemoryAccount> account;
};

constexpr std::uint64_t kMaxAllocation = std::uint64_t{1} << 39;

cairn_status allocate(cairn_device device, std::uint64_t size, std::uint64_t alignment, void** out_owned) {
  return guard("memory.allocate", [&] {
    if (out_owned == nullptr) throw InvalidArgument("out_owned is NULL");
    if (alignment == 0) alignment = alignof(std::max_align_t);
    if ((alignment & (alignment - 1)) != 0 || alignment > (std::uint64_t{1} << 21)) {
      throw InvalidArgument(fmt::format("the alignment {} is not a power of two up to 2 MiB", alignment));
    }
    require_cpu(device);
    const std::uint64_t align = std::max<std::uint64_t>(alignment, alignof(MemoryHeader));
    if (size > kMaxAllocation) {
      throw ResourceExhausted(fmt::format("{} bytes are more than any memory holds", size));
    }
    const std::uint64_t total = (align + size + align - 1) / align * align;
    auto* block = static_cast<std::byte*>(std::aligned_alloc(align, total));
    if (block == nullptr) throw ResourceExhausted(fmt::format("no memory for {} bytes", size));
    std::byte* payload = block + align;
    new (payload - sizeof(MemoryHeader)) MemoryHeader{block, size, current_thread().memory};
    if (current_thread().memory != nullptr) current_thread().memory->add(static_cast<std::int64_t>(size));
    *out_owned = payload;
  });
}

void release_memory(cairn_device device, void* memory) {
  (void)device;
  if (memory == nullptr) return;
  auto* header = std::launder(reinterpret_cast<MemoryHeader*>(static_cast<std::byte*>(memory) - sizeof(MemoryHeader)));
  if (header->account != nullptr) header->account->add(-static_cast<std::int64_t>(header->size));
  void* block = header->block;
  header->~MemoryHeader();
  std::free(block);
}

cairn_status capacity(cairn_device device, std::uint64_t* out_free, std::uint64_t* out_total) {
  return guard("memory.capacity", [&] {
    if (out_free == nullptr || out_total == nullptr) throw InvalidArgument("out_free or out_total is NULL");
    require_cpu(device);
    // "MemAvailable" also counts what the kernel can give back, which _SC_AVPHYS_PAGES does not.
    std::uint64_t total = 0;
    std::uint64_t available = 0;
    std::ifstream meminfo("/proc/meminfo");
    for (std::string key, unit; meminfo >> key;) {
      std::uint64_t kilobytes = 0;
      if (!(meminfo >> kilobytes) || !std::getline(meminfo, unit)) break;
      if (key == "MemTotal:") total = kilobytes * 1024;
      if (key == "MemAvailable:") available = kilobytes * 1024;
    }
    if (total == 0) throw InternalError("/proc/meminfo cannot be read");
    *out_free = available;
    *out_total = total;
  });
}

}  // namespace

const cairn_tensor_service kTensorService = {
    .struct_size = sizeof(cairn_tensor_service),
    .create = create,
    .retain =
        [](cairn_tensor* tensor) {
          if (tensor != nullptr) Tensor::from_handle(tensor)->retain();
        },
    .release =
        [](cairn_tensor* tensor) {
          if (tensor != nullptr) Tensor::from_handle(tensor)->release();
        },
    .view = view,
    .slice = slice,
    .wrap = wrap,
    .give = give,
};

const cairn_memory_service kMemoryService = {
    .struct_size = sizeof(cairn_memory_service),
    .allocate = allocate,
    .release = release_memory,
    .capacity = capacity,
};

}  // namespace cairn
