// "cairn.tensor" and "cairn.memory".
#include <gtest/gtest.h>

#include <cstring>

#include "core/plugin/arena.hpp"
#include "core/plugin/thread_context.hpp"
#include "core/tensor/tensor.hpp"
#include "host_table.hpp"

namespace cairn {
namespace {

constexpr cairn_device kCpu{CAIRN_DEVICE_CPU, 0};

TEST(TensorService, CreatesViewsSlicesAndReleases) {
  const auto& tensors = host_table<cairn_tensor_service>("cairn.tensor");
  const std::int64_t before = Tensor::live_count();
  const std::int64_t shape[] = {4, 3};
  cairn_tensor* tensor = nullptr;
  ASSERT_EQ(tensors.create(kInt32, shape, 2, kCpu, &tensor), CAIRN_STATUS_OK);
  cairn_tensor_view view{};
  ASSERT_EQ(tensors.view(tensor, &view), CAIRN_STATUS_OK);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 64, 0U);
  for (int i = 0; i < 12; ++i) static_cast<std::int32_t*>(view.data)[i] = i;
  cairn_tensor* part = nullptr;
  ASSERT_EQ(tensors.slice(tensor, 1, 3, &part), CAIRN_STATUS_OK);
  tensors.release(tensor);  // the slice holds the memory
  ASSERT_EQ(tensors.view(part, &view), CAIRN_STATUS_OK);
  EXPECT_EQ(view.shape[0], 2);
  const auto* first = reinterpret_cast<const std::int32_t*>(static_cast<const char*>(view.data) + view.byte_offset);
  EXPECT_EQ(first[0], 3);
  EXPECT_EQ(first[5], 8);
  tensors.retain(part);
  tensors.release(part);
  tensors.release(part);
  tensors.release(nullptr);
  EXPECT_EQ(Tensor::live_count(), before);
}

TEST(TensorService, RefusesWhatMakesNoSense) {
  const auto& tensors = host_table<cairn_tensor_service>("cairn.tensor");
  const std::int64_t shape[] = {2, -3};
  cairn_tensor* tensor = nullptr;
  EXPECT_EQ(tensors.create(kFloat32, shape, 2, kCpu, &tensor), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(tensors.create(kFloat32, nullptr, 2, kCpu, &tensor), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(tensors.create(kFloat32, shape, -1, kCpu, &tensor), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(tensors.create(kFloat32, shape, 1, kCpu, nullptr), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(tensors.create(kFloat32, shape, 1, {CAIRN_DEVICE_CUDA, 0}, &tensor), CAIRN_STATUS_UNSUPPORTED);
  EXPECT_EQ(tensors.view(nullptr, nullptr), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(tensors.slice(nullptr, 0, 1, &tensor), CAIRN_STATUS_INVALID_ARGUMENT);
  ASSERT_EQ(tensors.create(kFloat32, shape, 1, kCpu, &tensor), CAIRN_STATUS_OK);
  cairn_tensor* part = nullptr;
  EXPECT_EQ(tensors.slice(tensor, 1, 3, &part), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(part, nullptr);
  tensors.release(tensor);
}

TEST(TensorService, WrappedMemoryIsGivenBackOnce) {
  const auto& tensors = host_table<cairn_tensor_service>("cairn.tensor");
  float data[6] = {};
  const std::int64_t shape[] = {6};
  const cairn_tensor_view view{data, kCpu, 1, kFloat32, shape, nullptr, 0, 0, nullptr};
  int destroyed = 0;
  cairn_tensor* tensor = nullptr;
  const auto destroy = [](void* context) { ++*static_cast<int*>(context); };
  ASSERT_EQ(tensors.wrap(&view, destroy, &destroyed, &tensor), CAIRN_STATUS_OK);
  tensors.retain(tensor);
  tensors.release(tensor);
  EXPECT_EQ(destroyed, 0);
  tensors.release(tensor);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(tensors.wrap(nullptr, destroy, &destroyed, &tensor), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(destroyed, 1);
}

TEST(TensorService, AGivenTensorEndsWithTheArena) {
  const auto& tensors = host_table<cairn_tensor_service>("cairn.tensor");
  const std::int64_t before = Tensor::live_count();
  const std::int64_t shape[] = {6};
  cairn_tensor* tensor = nullptr;
  Arena arena;
  ASSERT_EQ(tensors.create(kFloat32, shape, 1, kCpu, &tensor), CAIRN_STATUS_OK);
  tensors.give(arena.table(), tensor);
  EXPECT_EQ(Tensor::live_count(), before + 1);
  arena.reset();
  EXPECT_EQ(Tensor::live_count(), before);
  tensors.give(arena.table(), nullptr);
}

TEST(MemoryService, AllocatesAlignedAndCounts) {
  const auto& memory = host_table<cairn_memory_service>("cairn.memory");
  const auto account = std::make_shared<MemoryAccount>();
  void* small = nullptr;
  void* large = nullptr;
  {
    const ThreadScope scope(ThreadContext{.memory = account});
    ASSERT_EQ(memory.allocate(kCpu, 1000, 0, &small), CAIRN_STATUS_OK);
    ASSERT_EQ(memory.allocate(kCpu, 5000, 4096, &large), CAIRN_STATUS_OK);
  }
  EXPECT_EQ(account->bytes(), 6000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % 4096, 0U);
  std::memset(small, 1, 1000);
  std::memset(large, 1, 5000);
  memory.release(kCpu, small);
  EXPECT_EQ(account->bytes(), 5000);
  memory.release(kCpu, large);
  memory.release(kCpu, nullptr);
  EXPECT_EQ(account->bytes(), 0);
}

TEST(MemoryService, RefusesWhatItCannotGive) {
  const auto& memory = host_table<cairn_memory_service>("cairn.memory");
  void* block = nullptr;
  EXPECT_EQ(memory.allocate(kCpu, UINT64_MAX, 64, &block), CAIRN_STATUS_RESOURCE_EXHAUSTED);
  EXPECT_EQ(memory.allocate(kCpu, 64, 3, &block), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(memory.allocate(kCpu, 64, std::uint64_t{1} << 40, &block), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(memory.allocate(kCpu, 64, 64, nullptr), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(memory.allocate({CAIRN_DEVICE_CUDA, 0}, 64, 64, &block), CAIRN_STATUS_UNSUPPORTED);
  EXPECT_EQ(block, nullptr);
}

TEST(MemoryService, KnowsTheMachinesMemory) {
  const auto& memory = host_table<cairn_memory_service>("cairn.memory");
  std::uint64_t free = 0;
  std::uint64_t total = 0;
  ASSERT_EQ(memory.capacity(kCpu, &free, &total), CAIRN_STATUS_OK);
  EXPECT_GT(free, 0U);
  EXPECT_GE(total, free);
}

}  // namespace
}  // namespace cairn
