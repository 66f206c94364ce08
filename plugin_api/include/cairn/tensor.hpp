// Tensor: a counted reference to memory with a shape. Used for rows' inputs and outputs, and for weights.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "cairn/arena.hpp"
#include "cairn/error.hpp"

namespace cairn {

inline constexpr cairn_dtype kFloat32{CAIRN_DTYPE_FLOAT, 32, 1};
inline constexpr cairn_dtype kFloat64{CAIRN_DTYPE_FLOAT, 64, 1};
inline constexpr cairn_dtype kInt32{CAIRN_DTYPE_INT, 32, 1};
inline constexpr cairn_dtype kInt64{CAIRN_DTYPE_INT, 64, 1};
inline constexpr cairn_dtype kUint8{CAIRN_DTYPE_UINT, 8, 1};

template <class T>
constexpr cairn_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return kFloat32;
  if constexpr (std::is_same_v<T, double>) return kFloat64;
  if constexpr (std::is_same_v<T, std::int32_t>) return kInt32;
  if constexpr (std::is_same_v<T, std::int64_t>) return kInt64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return kUint8;
}

inline constexpr int kMaxDims = 8;

// A compact view of host memory; borrows both the memory and the shape.
inline cairn_tensor_view host_view(void* data, cairn_dtype dtype, std::span<const std::int64_t> shape) noexcept {
  cairn_tensor_view view{};
  view.data = data;
  view.device = {CAIRN_DEVICE_CPU, 0};
  view.ndim = static_cast<std::int32_t>(shape.size());
  view.dtype = dtype;
  view.shape = shape.data();
  return view;
}

// A view that carries its own shape, so that it can be kept and passed on by value, and that keeps its memory alive
// when it can: host tensors by a reference, tensors made with of() or zeros() by sharing them. A borrowed view without
// an owner is step memory and valid no longer than that.
class Tensor {
 public:
  Tensor() = default;

  // What the host passed; keeps the owner alive, if it has one.
  static Tensor borrow(const cairn_tensor_view& view) {
    Tensor tensor;
    tensor.assign(view);
    const cairn_tensor_service* service = services().tensor;
    if (view.owner != nullptr && CAIRN_HAS(service, cairn_tensor_service, release)) {
      service->retain(view.owner);
      tensor.keep_ = std::shared_ptr<void>(
          view.owner, [service](void* owner) { service->release(static_cast<cairn_tensor*>(owner)); });
    }
    return tensor;
  }
  // A new host tensor, uninitialised.
  static Tensor create(cairn_dtype dtype, std::initializer_list<std::int64_t> shape) {
    const cairn_tensor_service* service = services().tensor;
    if (!CAIRN_HAS(service, cairn_tensor_service, view)) throw unsupported("this host has no service cairn.tensor");
    cairn_tensor* owned = nullptr;
    check(
        service->create(dtype, shape.begin(), static_cast<std::int32_t>(shape.size()), {CAIRN_DEVICE_CPU, 0}, &owned));
    return adopt(owned);
  }
  // Takes over one reference to a host tensor.
  static Tensor adopt(cairn_tensor* owned) {
    const cairn_tensor_service* service = services().tensor;
    Tensor tensor;
    tensor.keep_ =
        std::shared_ptr<void>(owned, [service](void* owner) { service->release(static_cast<cairn_tensor*>(owner)); });
    cairn_tensor_view view{};
    check(service->view(owned, &view));
    tensor.assign(view);
    tensor.view_.owner = owned;
    return tensor;
  }
  // A tensor of the plugin's own memory with the given values, row-major.
  template <class T>
  static Tensor of(std::vector<T> values, std::initializer_list<std::int64_t> shape) {
    auto shared = std::make_shared<std::vector<T>>(std::move(values));
    Tensor tensor;
    tensor.assign(host_view(shared->data(), dtype_of<T>(), std::span<const std::int64_t>(shape.begin(), shape.size())));
    if (tensor.elements() != static_cast<std::int64_t>(shared->size())) {
      throw std::invalid_argument("the tensor's shape has " + std::to_string(tensor.elements()) + " elements, but " +
                                  std::to_string(shared->size()) + " values were given");
    }
    tensor.keep_ = std::move(shared);
    return tensor;
  }

  bool defined() const noexcept { return view_.shape != nullptr; }
  cairn_dtype dtype() const noexcept { return view_.dtype; }
  std::span<const std::int64_t> shape() const noexcept { return {shape_.data(), static_cast<std::size_t>(view_.ndim)}; }
  std::int64_t dim(int i) const { return shape()[static_cast<std::size_t>(i < 0 ? i + view_.ndim : i)]; }
  std::int64_t elements() const noexcept {
    std::int64_t count = 1;
    for (std::int64_t extent : shape()) count *= extent;
    return count;
  }
  std::size_t nbytes() const noexcept { return static_cast<std::size_t>(elements()) * (view_.dtype.bits / 8); }
  bool compact() const noexcept {
    std::int64_t expected = 1;
    for (int i = view_.ndim - 1; view_.strides != nullptr && i >= 0; --i) {
      if (shape_[i] != 1 && strides_[i] != expected) return false;
      expected *= shape_[i];
    }
    return true;
  }
  void* data() const noexcept {
    return view_.data == nullptr ? nullptr : static_cast<char*>(view_.data) + view_.byte_offset;
  }
  // The elements of a compact host tensor; a wrong type is the caller's error.
  template <class T>
  std::span<T> values() const {
    constexpr cairn_dtype expected = dtype_of<std::remove_const_t<T>>();
    if (view_.dtype.code != expected.code || view_.dtype.bits != expected.bits || !compact()) {
      throw std::invalid_argument("values<T>() of a tensor of another type, or of one that is not compact");
    }
    return {static_cast<T*>(data()), static_cast<std::size_t>(elements())};
  }

  // Elements [start, end) of dimension `d`, sharing memory.
  Tensor narrow(int d, std::int64_t start, std::int64_t end) const {
    if (d < 0) d += view_.ndim;
    if (d < 0 || d >= view_.ndim || start < 0 || end < start || end > shape_[d]) {
      throw std::out_of_range("narrow: [" + std::to_string(start) + ", " + std::to_string(end) +
                              ") lies outside the dimension");
    }
    Tensor part(*this);
    if (d != 0 && part.view_.strides == nullptr) part.make_strides();
    const std::int64_t step = part.view_.strides == nullptr ? row_elements() : part.strides_[d];
    part.view_.byte_offset += static_cast<std::uint64_t>(start * step) * (view_.dtype.bits / 8);
    part.shape_[d] = end - start;
    return part;
  }
  // Compact copy in the plugin's own memory.
  Tensor clone() const {
    return filled(view_.dtype, shape(), nbytes(), [this](std::byte* to) { copy_to(to); });
  }
  // A tensor of `bytes` bytes of the plugin's own memory, written by fill(std::byte*).
  template <class Fill>
  static Tensor filled(cairn_dtype dtype, std::span<const std::int64_t> shape, std::size_t bytes, Fill&& fill) {
    auto memory = std::make_shared<std::vector<std::byte>>(bytes);
    fill(memory->data());
    Tensor tensor;
    tensor.assign(host_view(memory->data(), dtype, shape));
    tensor.keep_ = std::move(memory);
    return tensor;
  }
  // Writes the elements, row-major and compact, to `to` (nbytes() bytes).
  void copy_to(void* to) const {
    if (elements() == 0) return;
    if (compact()) {
      std::memcpy(to, data(), nbytes());
      return;
    }
    const std::size_t size = view_.dtype.bits / 8;
    std::array<std::int64_t, kMaxDims> index{};
    for (std::int64_t n = 0, count = elements(); n < count; ++n) {
      std::int64_t at = 0;
      for (int i = 0; i < view_.ndim; ++i) at += index[i] * strides_[i];
      std::memcpy(static_cast<char*>(to) + static_cast<std::size_t>(n) * size,
                  static_cast<const char*>(data()) + at * static_cast<std::int64_t>(size), size);
      for (int i = view_.ndim - 1; i >= 0 && ++index[i] == shape_[i]; --i) index[i] = 0;
    }
  }

  // For ABI calls; valid while this object lives and is not moved.
  const cairn_tensor_view* view() const noexcept {
    view_.shape = shape_.data();
    if (view_.strides != nullptr) view_.strides = strides_.data();
    return &view_;
  }
  // A view that lives as long as the arena: memory with a host owner is passed on, everything else is copied into the
  // arena.
  cairn_tensor_view in(const Arena& arena) const {
    if (!defined()) return {};
    if (view_.owner == nullptr) {
      cairn_tensor_view copied = arena.tensor(view_.dtype, shape());
      copy_to(copied.data);
      return copied;
    }
    cairn_tensor_view kept = view_;
    kept.shape = arena.copy(shape()).data();
    if (view_.strides != nullptr)
      kept.strides = arena.copy(std::span<const std::int64_t>(strides_.data(), shape().size())).data();
    const cairn_tensor_service* service = services().tensor;
    if (CAIRN_HAS(service, cairn_tensor_service, give)) {
      service->retain(view_.owner);
      service->give(arena.raw(), view_.owner);
    }
    return kept;
  }

  Tensor(const Tensor& other) noexcept { *this = other; }
  Tensor& operator=(const Tensor& other) noexcept {
    view_ = other.view_;
    shape_ = other.shape_;
    strides_ = other.strides_;
    keep_ = other.keep_;
    if (view_.shape != nullptr) view_.shape = shape_.data();
    if (view_.strides != nullptr) view_.strides = strides_.data();
    return *this;
  }

 private:
  void assign(const cairn_tensor_view& view) {
    if (view.ndim < 0 || view.ndim > kMaxDims) {
      throw std::invalid_argument("a tensor of " + std::to_string(view.ndim) + " dimensions; at most 8 are supported");
    }
    view_ = view;
    for (int i = 0; i < view.ndim; ++i) shape_[i] = view.shape[i];
    view_.shape = shape_.data();
    if (view.strides != nullptr) {
      for (int i = 0; i < view.ndim; ++i) strides_[i] = view.strides[i];
      view_.strides = strides_.data();
    }
  }
  void make_strides() noexcept {
    std::int64_t step = 1;
    for (int i = view_.ndim - 1; i >= 0; --i) strides_[i] = step, step *= shape_[i];
    view_.strides = strides_.data();
  }
  std::int64_t row_elements() const noexcept {
    std::int64_t count = 1;
    for (int i = 1; i < view_.ndim; ++i) count *= shape_[i];
    return count;
  }

  mutable cairn_tensor_view view_{};
  std::array<std::int64_t, kMaxDims> shape_{};
  std::array<std::int64_t, kMaxDims> strides_{};
  std::shared_ptr<void> keep_;
};

using TensorList = std::vector<Tensor>;

}  // namespace cairn
