// Host tensors: what cairn_tensor is on the host's side. Reference counted, 64-byte aligned, any thread.
// Small ones come from recycled blocks, so that a steady step does not reach the heap. Used by graph state (values on
// edges), by resources and by the ABI's tensor service.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "cairn/abi.h"

namespace cairn {

inline constexpr int kMaxTensorDims = 8;

class Tensor;

// Owning pointer; copying retains.
class TensorPtr {
 public:
  TensorPtr() = default;
  explicit TensorPtr(Tensor* adopted) noexcept : tensor_(adopted) {}  // takes over one reference
  TensorPtr(const TensorPtr& other) noexcept;
  TensorPtr(TensorPtr&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  TensorPtr& operator=(TensorPtr other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~TensorPtr();

  static TensorPtr retain(Tensor* borrowed) noexcept;
  Tensor* get() const noexcept { return tensor_; }
  Tensor* operator->() const noexcept { return tensor_; }
  Tensor& operator*() const noexcept { return *tensor_; }
  explicit operator bool() const noexcept { return tensor_ != nullptr; }
  Tensor* release() noexcept { return std::exchange(tensor_, nullptr); }  // gives the reference away

 private:
  Tensor* tensor_ = nullptr;
};

class Tensor {
 public:
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  // Uninitialised memory. Throws InvalidArgument (bad shape or dtype) or ResourceExhausted (out of memory).
  static TensorPtr create(cairn_dtype dtype, std::span<const std::int64_t> shape);
  // Elements [start, end) of dimension 0, sharing memory with `base`. Throws InvalidArgument.
  static TensorPtr slice(Tensor& base, std::int64_t start, std::int64_t end);
  // Foreign compact host memory, given back through `destroy` (may be null) when the last reference goes. Throws
  // InvalidArgument for strided or device memory and a bad shape; `destroy` is then not called.
  static TensorPtr wrap(const cairn_tensor_view& view, void (*destroy)(void*), void* context);
  // A copy of a view's contents (row-major). Throws InvalidArgument for a device or dtype that cannot be read here.
  static TensorPtr copy_of(const cairn_tensor_view& view);

  cairn_tensor_view view() noexcept;
  std::byte* data() const noexcept { return data_; }
  cairn_dtype dtype() const noexcept { return dtype_; }
  std::span<const std::int64_t> shape() const noexcept { return {shape_.data(), static_cast<std::size_t>(ndim_)}; }
  std::int64_t elements() const noexcept;
  std::size_t nbytes() const noexcept;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;

  // Tensors alive in this process, for the leak counters.
  static std::int64_t live_count() noexcept;

  cairn_tensor* handle() noexcept { return reinterpret_cast<cairn_tensor*>(this); }
  static Tensor* from_handle(cairn_tensor* handle) noexcept { return reinterpret_cast<Tensor*>(handle); }

 private:
  Tensor() = default;
  ~Tensor() = default;
  static Tensor* allocate(std::size_t payload_bytes);
  void set_shape(std::span<const std::int64_t> shape) noexcept;

  std::atomic<std::int32_t> references_{1};
  std::uint32_t block_class_ = 0;  // which recycler the block goes back to; see tensor.cpp
  std::byte* data_ = nullptr;
  cairn_dtype dtype_{};
  std::int32_t ndim_ = 0;
  std::uint64_t flags_ = 0;  // CAIRN_TENSOR_*
  std::array<std::int64_t, kMaxTensorDims> shape_{};
  Tensor* base_ = nullptr;  // slice: the tensor that owns the memory
  void (*destroy_)(void*) = nullptr;
  void* destroy_context_ = nullptr;
};

inline TensorPtr::TensorPtr(const TensorPtr& other) noexcept : tensor_(other.tensor_) {
  if (tensor_ != nullptr) tensor_->retain();
}
inline TensorPtr::~TensorPtr() {
  if (tensor_ != nullptr) tensor_->release();
}
inline TensorPtr TensorPtr::retain(Tensor* borrowed) noexcept {
  if (borrowed != nullptr) borrowed->retain();
  return TensorPtr(borrowed);
}

// Bytes of one element of a plain dtype, 0 for block-quantised or unknown ones.
std::size_t element_size(cairn_dtype dtype) noexcept;
inline constexpr cairn_dtype kFloat32{CAIRN_DTYPE_FLOAT, 32, 1};
inline constexpr cairn_dtype kInt32{CAIRN_DTYPE_INT, 32, 1};
inline constexpr cairn_dtype kInt64{CAIRN_DTYPE_INT, 64, 1};

}  // namespace cairn
