// Storage of host tensors: a header and its payload in one 64-byte aligned block, recycled by size class.
#include "core/tensor/tensor.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/tensor/dtype.hpp"

namespace cairn {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallestPayload = 64;
constexpr std::uint32_t kClassCount = 11;                      // payloads of 64 B, 128 B, ... 64 KiB
constexpr std::uint32_t kHeapClass = 0xffffffffU;              // larger blocks go straight to the heap
constexpr std::size_t kMaxTensorBytes = std::size_t{1} << 39;  // beyond it a size is a mistake, not a tensor
constexpr std::size_t kKeptBytesPerClass = std::size_t{4} << 20;

constexpr std::size_t class_payload(std::uint32_t block_class) {
  return kSmallestPayload << block_class;
}

// Free blocks of one size. Any thread.
class FreeList {
 public:
  void* take() {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return nullptr;
    void* block = blocks_.back();
    blocks_.pop_back();
    return block;
  }
  // False when the list is full: the caller frees the block.
  bool put(void* block, std::size_t limit) noexcept {
    const std::lock_guard lock(mutex_);
    if (blocks_.size() >= limit) return false;
    try {
      blocks_.push_back(block);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<void*> blocks_;
};

// Never destroyed: a tensor may be released by a thread that outlives main's statics.
std::array<FreeList, kClassCount>& free_lists() {
  static auto* lists = new std::array<FreeList, kClassCount>();
  return *lists;
}

std::atomic<std::int64_t> live_tensors{0};

std::uint32_t class_for(std::size_t payload) {
  for (std::uint32_t block_class = 0; block_class < kClassCount; ++block_class) {
    if (payload <= class_payload(block_class)) return block_class;
  }
  return kHeapClass;
}

std::string dtype_text(cairn_dtype dtype) {
  return "code " + std::to_string(dtype.code) + ", " + std::to_string(dtype.bits) + " bits, " +
         std::to_string(dtype.lanes) + " lanes";
}

void check_dims(std::int64_t ndim) {
  if (ndim < 0 || ndim > kMaxTensorDims) {
    throw InvalidArgument("A tensor has " + std::to_string(ndim) + " dimensions; at most " +
                          std::to_string(kMaxTensorDims) + " are supported.");
  }
}

// Bytes of a compact tensor of `element` bytes per element.
std::size_t compact_bytes(std::span<const std::int64_t> shape, std::size_t element) {
  const auto count = element_count(shape);
  std::int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, static_cast<std::int64_t>(element), &bytes)) {
    throw InvalidArgument("A tensor cannot have shape " + shape_string(shape) +
                          ": dimensions must not be negative and the size must fit in 63 bits.");
  }
  return static_cast<std::size_t>(bytes);
}

std::size_t required_element_size(cairn_dtype dtype) {
  const std::size_t element = element_size(dtype);
  if (element == 0) {
    throw InvalidArgument("A tensor with elements of " + dtype_text(dtype) +
                          " cannot be created or read by the host; use a plain numeric type.");
  }
  return element;
}

void check_host_memory(const cairn_tensor_view& view) {
  if (view.device.type != CAIRN_DEVICE_CPU && view.device.type != CAIRN_DEVICE_CUDA_PINNED) {
    throw InvalidArgument("A tensor on device type " + std::to_string(view.device.type) +
                          " cannot be read here; copy it to host memory first.");
  }
}

std::span<const std::int64_t> checked_shape(const cairn_tensor_view& view) {
  check_dims(view.ndim);
  if (view.ndim > 0 && view.shape == nullptr) {
    throw InvalidArgument("A tensor view of " + std::to_string(view.ndim) + " dimensions has no shape.");
  }
  return {view.shape, static_cast<std::size_t>(view.ndim)};
}

bool is_compact(const cairn_tensor_view& view) {
  if (view.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (std::int32_t dim = view.ndim - 1; dim >= 0; --dim) {
    if (view.shape[dim] != 1 && view.strides[dim] != expected) return false;
    if (__builtin_mul_overflow(expected, view.shape[dim], &expected)) return false;
  }
  return true;
}

const std::byte* first_byte(const cairn_tensor_view& view) {
  return view.data == nullptr ? nullptr : static_cast<const std::byte*>(view.data) + view.byte_offset;
}

}  // namespace

std::size_t element_size(cairn_dtype dtype) noexcept {
  if (dtype.lanes != 1) return 0;
  const auto is = [&](std::initializer_list<int> allowed) -> std::size_t {
    for (const int bits : allowed) {
      if (dtype.bits == bits) return static_cast<std::size_t>(bits) / 8;
    }
    return 0;
  };
  switch (dtype.code) {
    case CAIRN_DTYPE_INT:
    case CAIRN_DTYPE_UINT:
      return is({8, 16, 32, 64});
    case CAIRN_DTYPE_FLOAT:
      return is({16, 32, 64});
    case CAIRN_DTYPE_BFLOAT:
      return is({16});
    case CAIRN_DTYPE_COMPLEX:
      return is({64, 128});
    case CAIRN_DTYPE_BOOL:
    case CAIRN_DTYPE_FLOAT8_E4M3FN:
    case CAIRN_DTYPE_FLOAT8_E5M2:
      return is({8});
    default:
      return 0;
  }
}

Tensor* Tensor::allocate(std::size_t payload_bytes) {
  constexpr std::size_t kHeader = (sizeof(Tensor) + kAlignment - 1) / kAlignment * kAlignment;
  const std::uint32_t block_class = class_for(payload_bytes);
  void* block = block_class == kHeapClass ? nullptr : free_lists()[block_class].take();
  if (block == nullptr) {
    const std::size_t payload = block_class == kHeapClass ? payload_bytes : class_payload(block_class);
    if (payload > kMaxTensorBytes) {
      throw ResourceExhausted("A tensor of " + std::to_string(payload) + " bytes is larger than the limit of " +
                              std::to_string(kMaxTensorBytes) + ".");
    }
    block = ::operator new (kHeader + payload, std::align_val_t{kAlignment}, std::nothrow);
    if (block == nullptr) {
      throw ResourceExhausted("Out of memory: a tensor of " + std::to_string(payload_bytes) +
                              " bytes cannot be allocated.");
    }
  }
  auto* tensor = new (block) Tensor();
  tensor->block_class_ = block_class;
  tensor->data_ = static_cast<std::byte*>(block) + kHeader;
  live_tensors.fetch_add(1, std::memory_order_relaxed);
  return tensor;
}

void Tensor::set_shape(std::span<const std::int64_t> shape) noexcept {
  ndim_ = static_cast<std::int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), shape_.begin());
}

void Tensor::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (destroy_ != nullptr) destroy_(destroy_context_);
  Tensor* base = base_;
  constexpr std::size_t kHeader = (sizeof(Tensor) + kAlignment - 1) / kAlignment * kAlignment;
  const std::uint32_t block_class = block_class_;
  this->~Tensor();
  live_tensors.fetch_sub(1, std::memory_order_relaxed);
  void* block = this;
  if (block_class == kHeapClass ||
      !free_lists()[block_class].put(block, kKeptBytesPerClass / (kHeader + class_payload(block_class)))) {
    ::operator delete (block, std::align_val_t{kAlignment});
  }
  if (base != nullptr) base->release();  // a base has no base of its own: this does not nest further
}

TensorPtr Tensor::create(cairn_dtype dtype, std::span<const std::int64_t> shape) {
  check_dims(static_cast<std::int64_t>(shape.size()));
  const std::size_t bytes = compact_bytes(shape, required_element_size(dtype));
  Tensor* tensor = allocate(bytes);
  tensor->dtype_ = dtype;
  tensor->set_shape(shape);
  return TensorPtr(tensor);
}

TensorPtr Tensor::slice(Tensor& base, std::int64_t start, std::int64_t end) {
  if (base.ndim_ == 0) throw InvalidArgument("A tensor without dimensions cannot be sliced; reshape it to [1] first.");
  const std::size_t element = required_element_size(base.dtype_);
  const std::int64_t rows = base.shape_[0];
  if (start < 0 || end < start || end > rows) {
    throw InvalidArgument("Rows [" + std::to_string(start) + ", " + std::to_string(end) + ") of a tensor of shape " +
                          shape_string(base.shape()) + " do not exist.");
  }
  const std::size_t row_bytes = compact_bytes(base.shape().subspan(1), element);
  Tensor* tensor = allocate(0);
  tensor->dtype_ = base.dtype_;
  tensor->flags_ = base.flags_;
  tensor->set_shape(base.shape());
  tensor->shape_[0] = end - start;
  tensor->data_ = base.data_ == nullptr ? nullptr : base.data_ + static_cast<std::size_t>(start) * row_bytes;
  tensor->base_ = base.base_ != nullptr ? base.base_ : &base;
  tensor->base_->retain();
  return TensorPtr(tensor);
}

TensorPtr Tensor::wrap(const cairn_tensor_view& view, void (*destroy)(void*), void* context) {
  check_host_memory(view);
  const auto shape = checked_shape(view);
  // Elements the host cannot read (block formats, unknown codes) have size 1 here: only the count is checked.
  const std::size_t element = element_size(view.dtype);
  const std::size_t bytes = compact_bytes(shape, element == 0 ? 1 : element);
  if (!is_compact(view)) {
    throw InvalidArgument("A tensor of shape " + shape_string(shape) +
                          " has strides that leave gaps; only row-major compact memory can be wrapped.");
  }
  if (bytes > 0 && view.data == nullptr) {
    throw InvalidArgument("A tensor of shape " + shape_string(shape) + " has no data.");
  }
  Tensor* tensor = allocate(0);
  tensor->dtype_ = view.dtype;
  tensor->flags_ = view.flags & CAIRN_TENSOR_READ_ONLY;
  tensor->set_shape(shape);
  tensor->data_ = const_cast<std::byte*>(first_byte(view));
  tensor->destroy_ = destroy;
  tensor->destroy_context_ = context;
  return TensorPtr(tensor);
}

TensorPtr Tensor::copy_of(const cairn_tensor_view& view) {
  check_host_memory(view);
  const auto shape = checked_shape(view);
  const std::size_t element = required_element_size(view.dtype);
  const std::size_t bytes = compact_bytes(shape, element);
  if (bytes > 0 && view.data == nullptr) {
    throw InvalidArgument("A tensor of shape " + shape_string(shape) + " has no data.");
  }
  TensorPtr copy = create(view.dtype, shape);
  if (bytes == 0) return copy;
  if (is_compact(view)) {
    std::memcpy(copy->data_, first_byte(view), bytes);
    return copy;
  }
  std::array<std::int64_t, kMaxTensorDims> index{};
  std::byte* out = copy->data_;
  for (std::size_t done = 0; done < bytes; done += element, out += element) {
    std::int64_t offset = 0;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) offset += index[dim] * view.strides[dim];
    std::memcpy(out, first_byte(view) + offset * static_cast<std::int64_t>(element), element);
    for (std::size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim]) break;
      index[dim] = 0;
    }
  }
  return copy;
}

cairn_tensor_view Tensor::view() noexcept {
  cairn_tensor_view view{};
  view.data = data_;
  view.device = {CAIRN_DEVICE_CPU, 0};
  view.ndim = ndim_;
  view.dtype = dtype_;
  view.shape = shape_.data();
  view.flags = flags_;
  view.owner = handle();
  return view;
}

std::int64_t Tensor::elements() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape()) count *= dim;  // checked when the tensor was made
  return count;
}

std::size_t Tensor::nbytes() const noexcept {
  return static_cast<std::size_t>(elements()) * element_size(dtype_);
}

std::int64_t Tensor::live_count() noexcept {
  return live_tensors.load(std::memory_order_relaxed);
}

}  // namespace cairn
