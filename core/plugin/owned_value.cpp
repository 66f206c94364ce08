// Two passes: the first checks and measures, the second copies and cannot fail.
#include "core/plugin/owned_value.hpp"

#include <cstring>
#include <utility>

#include "core/base/error.hpp"
#include "core/plugin/abi_value.hpp"
#include "core/tensor/tensor.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

class Measure {
 public:
  std::uint64_t of(const cairn_value& value) {
    visit(value, 0);
    return total_;
  }

 private:
  void add(const void* data, std::uint64_t count, std::uint64_t element) {
    if (data == nullptr && count != 0) throw InvalidArgument("a value has a size but its data pointer is NULL");
    if (count > (kMaxBytes - total_) / element) throw InvalidArgument("a value of more than 1 GiB");
    total_ += count * element;
    if (element == 1) total_ = (total_ + 7) & ~std::uint64_t{7};  // what follows stays aligned
  }

  void visit(const cairn_value& value, int depth) {
    if (depth > kMaxAbiValueDepth) throw InvalidArgument("a value nests deeper than 64 lists and maps");
    switch (value.kind) {
      case CAIRN_VALUE_STRING:
        return add(value.as.string.data, value.as.string.size, 1);
      case CAIRN_VALUE_BYTES:
        return add(value.as.bytes.data, value.as.bytes.size, 1);
      case CAIRN_VALUE_LIST:
        add(value.as.list.data, value.as.list.count, sizeof(cairn_value));
        for (std::uint64_t i = 0; i < value.as.list.count; ++i) visit(value.as.list.data[i], depth + 1);
        return;
      case CAIRN_VALUE_MAP:
        add(value.as.map.data, value.as.map.count, sizeof(cairn_entry));
        for (std::uint64_t i = 0; i < value.as.map.count; ++i) {
          add(value.as.map.data[i].key.data, value.as.map.data[i].key.size, 1);
          visit(value.as.map.data[i].value, depth + 1);
        }
        return;
      default:
        return;
    }
  }

  std::uint64_t total_ = 0;
};

class Copy {
 public:
  explicit Copy(std::byte* memory) : at_(memory) {}

  cairn_value of(const cairn_value& value) {
    cairn_value copy = value;
    copy.reserved = 0;
    switch (value.kind) {
      case CAIRN_VALUE_BOOL:
      case CAIRN_VALUE_INT:
      case CAIRN_VALUE_FLOAT:
      case CAIRN_VALUE_OPAQUE:
        break;
      case CAIRN_VALUE_STRING:
        copy.as.string = text(value.as.string);
        break;
      case CAIRN_VALUE_BYTES:
        copy.as.bytes.data = bytes(value.as.bytes.data, value.as.bytes.size);
        break;
      case CAIRN_VALUE_TENSOR:
        if (value.as.tensor != nullptr) Tensor::from_handle(value.as.tensor)->retain();
        break;
      case CAIRN_VALUE_LIST: {
        auto* elements = take<cairn_value>(value.as.list.count);
        for (std::uint64_t i = 0; i < value.as.list.count; ++i) elements[i] = of(value.as.list.data[i]);
        copy.as.list.data = elements;
        break;
      }
      case CAIRN_VALUE_MAP: {
        auto* entries = take<cairn_entry>(value.as.map.count);
        for (std::uint64_t i = 0; i < value.as.map.count; ++i) {
          entries[i].key = text(value.as.map.data[i].key);
          entries[i].value = of(value.as.map.data[i].value);
        }
        copy.as.map.data = entries;
        break;
      }
      default:
        copy = {};
    }
    return copy;
  }

 private:
  template <class T>
  T* take(std::uint64_t count) {
    auto* taken = reinterpret_cast<T*>(at_);
    at_ += count * sizeof(T);
    return taken;
  }
  const void* bytes(const void* data, std::uint64_t size) {
    std::byte* to = at_;
    if (size != 0) std::memcpy(to, data, size);
    at_ += (size + 7) & ~std::uint64_t{7};
    return to;
  }
  cairn_str text(cairn_str from) { return {static_cast<const char*>(bytes(from.data, from.size)), from.size}; }

  std::byte* at_;
};

void give_back(const cairn_value& value) noexcept {
  switch (value.kind) {
    case CAIRN_VALUE_TENSOR:
      if (value.as.tensor != nullptr) Tensor::from_handle(value.as.tensor)->release();
      break;
    case CAIRN_VALUE_OPAQUE:
      if (value.as.opaque.destroy != nullptr) value.as.opaque.destroy(value.as.opaque.object);
      break;
    case CAIRN_VALUE_LIST:
      for (std::uint64_t i = 0; i < value.as.list.count; ++i) give_back(value.as.list.data[i]);
      break;
    case CAIRN_VALUE_MAP:
      for (std::uint64_t i = 0; i < value.as.map.count; ++i) give_back(value.as.map.data[i].value);
      break;
    default:
      break;
  }
}

}  // namespace

OwnedValue::OwnedValue(const cairn_value& value) {
  const std::uint64_t size = Measure().of(value);
  if (size != 0) memory_.reset(new std::byte[size]);
  value_ = Copy(memory_.get()).of(value);
}

OwnedValue::OwnedValue(OwnedValue&& other) noexcept
    : value_(std::exchange(other.value_, {})), memory_(std::move(other.memory_)) {}

OwnedValue& OwnedValue::operator=(OwnedValue&& other) noexcept {
  std::swap(value_, other.value_);
  std::swap(memory_, other.memory_);
  return *this;
}

OwnedValue::~OwnedValue() {
  give_back(value_);
}

}  // namespace cairn
