// Host tensors: shapes and types, sharing, foreign memory, reference counts across threads.
#include "core/tensor/tensor.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "core/base/error.hpp"

namespace cairn {
namespace {

template <std::size_t N>
TensorPtr make(cairn_dtype dtype, const std::array<std::int64_t, N>& shape) {
  return Tensor::create(dtype, shape);
}

TEST(Tensor, IsAlignedAndKnowsItsShape) {
  const TensorPtr tensor = make(kFloat32, std::array<std::int64_t, 2>{3, 5});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->data()) % 64, 0U);
  EXPECT_EQ(tensor->elements(), 15);
  EXPECT_EQ(tensor->nbytes(), 60U);
  const cairn_tensor_view view = tensor->view();
  EXPECT_EQ(view.ndim, 2);
  EXPECT_EQ(view.shape[1], 5);
  EXPECT_EQ(view.strides, nullptr);
  EXPECT_EQ(view.device.type, CAIRN_DEVICE_CPU);
  EXPECT_EQ(Tensor::from_handle(view.owner), tensor.get());
}

TEST(Tensor, OfEverySizeClassHoldsItsBytes) {
  for (const std::int64_t bytes : {0, 1, 64, 65, 4096, 65536, 65537, 1 << 20}) {
    const TensorPtr tensor = Tensor::create({CAIRN_DTYPE_UINT, 8, 1}, std::array{bytes});
    std::fill_n(tensor->data(), bytes, std::byte{0xab});
    EXPECT_EQ(tensor->nbytes(), static_cast<std::size_t>(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->data()) % 64, 0U);
  }
}

TEST(Tensor, AScalarHasOneElement) {
  const TensorPtr tensor = Tensor::create(kInt64, {});
  EXPECT_EQ(tensor->elements(), 1);
  EXPECT_EQ(tensor->nbytes(), 8U);
}

TEST(Tensor, RefusesWhatCannotBeATensor) {
  EXPECT_THROW(make(kFloat32, std::array<std::int64_t, 1>{-1}), InvalidArgument);
  EXPECT_THROW(make(kFloat32, std::array<std::int64_t, 2>{INT64_MAX, 2}), InvalidArgument);
  EXPECT_THROW(make(kFloat32, std::array<std::int64_t, 9>{1, 1, 1, 1, 1, 1, 1, 1, 1}), InvalidArgument);
  EXPECT_THROW(make({CAIRN_DTYPE_FLOAT, 24, 1}, std::array<std::int64_t, 1>{1}), InvalidArgument);
  EXPECT_THROW(make({CAIRN_DTYPE_FLOAT, 32, 4}, std::array<std::int64_t, 1>{1}), InvalidArgument);
  EXPECT_THROW(make({CAIRN_DTYPE_BLOCK, 3, 1}, std::array<std::int64_t, 1>{32}), InvalidArgument);
  EXPECT_THROW(make(kFloat32, std::array<std::int64_t, 1>{std::int64_t{1} << 60}), ResourceExhausted);
}

TEST(Tensor, SizesOfElements) {
  EXPECT_EQ(element_size({CAIRN_DTYPE_BFLOAT, 16, 1}), 2U);
  EXPECT_EQ(element_size({CAIRN_DTYPE_BOOL, 8, 1}), 1U);
  EXPECT_EQ(element_size({CAIRN_DTYPE_COMPLEX, 64, 1}), 8U);
  EXPECT_EQ(element_size({CAIRN_DTYPE_FLOAT8_E5M2, 8, 1}), 1U);
  EXPECT_EQ(element_size({CAIRN_DTYPE_BLOCK, 2, 1}), 0U);
  EXPECT_EQ(element_size({99, 8, 1}), 0U);
}

TEST(Tensor, ASliceSharesMemoryAndKeepsItAlive) {
  const std::int64_t before = Tensor::live_count();
  TensorPtr part;
  {
    const TensorPtr whole = make(kInt32, std::array<std::int64_t, 2>{4, 2});
    auto* values = reinterpret_cast<std::int32_t*>(whole->data());
    std::iota(values, values + 8, 0);
    const TensorPtr middle = Tensor::slice(*whole, 1, 4);
    part = Tensor::slice(*middle, 1, 2);
    EXPECT_EQ(part->data(), whole->data() + 16);
  }
  EXPECT_EQ(part->shape()[0], 1);
  EXPECT_EQ(reinterpret_cast<const std::int32_t*>(part->data())[0], 4);
  EXPECT_EQ(Tensor::live_count(), before + 2) << "the slice and what it is cut from; not the slice between";
  part = TensorPtr();
  EXPECT_EQ(Tensor::live_count(), before);
}

TEST(Tensor, ASliceOutsideIsRefused) {
  const TensorPtr tensor = make(kInt32, std::array<std::int64_t, 1>{4});
  EXPECT_THROW(Tensor::slice(*tensor, -1, 2), InvalidArgument);
  EXPECT_THROW(Tensor::slice(*tensor, 3, 2), InvalidArgument);
  EXPECT_THROW(Tensor::slice(*tensor, 0, 5), InvalidArgument);
  EXPECT_THROW(Tensor::slice(*Tensor::create(kInt32, {}), 0, 0), InvalidArgument);
  EXPECT_EQ(Tensor::slice(*tensor, 4, 4)->elements(), 0);
}

TEST(Tensor, ForeignMemoryIsGivenBackOnceAfterTheLastReference) {
  std::array<float, 6> memory{};
  const std::array<std::int64_t, 2> shape{2, 3};
  int destroyed = 0;
  cairn_tensor_view view{};
  view.data = memory.data();
  view.device = {CAIRN_DEVICE_CPU, 0};
  view.ndim = 2;
  view.dtype = kFloat32;
  view.shape = shape.data();
  view.flags = CAIRN_TENSOR_READ_ONLY;
  {
    TensorPtr slice;
    {
      const TensorPtr tensor = Tensor::wrap(
          view, [](void* count) { ++*static_cast<int*>(count); }, &destroyed);
      EXPECT_EQ(tensor->data(), reinterpret_cast<std::byte*>(memory.data()));
      EXPECT_EQ(tensor->view().flags, static_cast<std::uint64_t>(CAIRN_TENSOR_READ_ONLY));
      slice = Tensor::slice(*tensor, 1, 2);
    }
    EXPECT_EQ(destroyed, 0);
    EXPECT_EQ(slice->view().flags, static_cast<std::uint64_t>(CAIRN_TENSOR_READ_ONLY));
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(Tensor, WrapRefusesWhatItCannotHoldAndDoesNotDestroyIt) {
  std::array<float, 6> memory{};
  const std::array<std::int64_t, 2> shape{2, 3};
  const std::array<std::int64_t, 2> transposed{1, 2};
  cairn_tensor_view view{};
  view.data = memory.data();
  view.device = {CAIRN_DEVICE_CPU, 0};
  view.ndim = 2;
  view.dtype = kFloat32;
  view.shape = shape.data();
  const auto refused = [](const cairn_tensor_view& bad) {
    int destroyed = 0;
    EXPECT_THROW(Tensor::wrap(
                     bad, [](void* count) { ++*static_cast<int*>(count); }, &destroyed),
                 InvalidArgument);
    EXPECT_EQ(destroyed, 0);
  };
  cairn_tensor_view bad = view;
  bad.strides = transposed.data();
  refused(bad);
  bad = view;
  bad.device.type = CAIRN_DEVICE_CUDA;
  refused(bad);
  bad = view;
  bad.data = nullptr;
  refused(bad);
  bad = view;
  bad.shape = nullptr;
  refused(bad);
  bad = view;
  bad.ndim = -1;
  refused(bad);
}

TEST(Tensor, ACopyOfAStridedViewIsCompact) {
  const std::array<std::int32_t, 6> memory{0, 1, 2, 3, 4, 5};  // [2, 3], read as its transpose [3, 2]
  const std::array<std::int64_t, 2> shape{3, 2};
  const std::array<std::int64_t, 2> strides{1, 3};
  cairn_tensor_view view{};
  view.data = const_cast<std::int32_t*>(memory.data());
  view.device = {CAIRN_DEVICE_CPU, 0};
  view.ndim = 2;
  view.dtype = kInt32;
  view.shape = shape.data();
  view.strides = strides.data();
  const TensorPtr copy = Tensor::copy_of(view);
  const auto* values = reinterpret_cast<const std::int32_t*>(copy->data());
  EXPECT_EQ(std::vector<std::int32_t>(values, values + 6), (std::vector<std::int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(copy->view().strides, nullptr);
}

TEST(Tensor, ReferencesAreCountedAcrossThreads) {
  const std::int64_t before = Tensor::live_count();
  {
    const TensorPtr shared = make(kInt32, std::array<std::int64_t, 1>{16});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([shared] {
        for (int i = 0; i < 2000; ++i) {
          const TensorPtr mine = shared;
          const TensorPtr fresh = Tensor::create(kInt32, std::array<std::int64_t, 1>{16});
          *reinterpret_cast<std::int32_t*>(fresh->data()) = i;
          const TensorPtr slice = Tensor::slice(*mine, 0, 1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(Tensor::live_count(), before);
}

}  // namespace
}  // namespace cairn
