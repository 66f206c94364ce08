// The thread-local context.
#include "core/plugin/thread_context.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "core/base/error.hpp"
#include "core/plugin/host_services.hpp"

namespace cairn {
namespace {

TEST(ThreadContext, ScopesNestAndPutBackWhatWasThere) {
  EXPECT_EQ(current_thread().classes, 0U);
  {
    const ThreadScope outer(ThreadContext{.classes = CAIRN_THREAD_MAIN});
    {
      ThreadContext context = current_thread();
      context.classes |= CAIRN_THREAD_DEVICE;
      const ThreadScope inner(context);
      EXPECT_EQ(current_thread().classes, static_cast<std::uint32_t>(CAIRN_THREAD_MAIN | CAIRN_THREAD_DEVICE));
    }
    EXPECT_EQ(current_thread().classes, static_cast<std::uint32_t>(CAIRN_THREAD_MAIN));
    std::uint32_t elsewhere = 99;
    std::thread([&] { elsewhere = current_thread().classes; }).join();
    EXPECT_EQ(elsewhere, 0U);
  }
  EXPECT_EQ(current_thread().classes, 0U);
}

TEST(ThreadScratch, GrowsAndStays) {
  void* small = thread_scratch(100);
  std::memset(small, 1, 100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small) % 64, 0U);
  EXPECT_EQ(thread_scratch(50), small);
  void* large = thread_scratch(std::size_t{1} << 20);
  std::memset(large, 2, std::size_t{1} << 20);
  EXPECT_EQ(thread_scratch(100), large);
  EXPECT_EQ(thread_scratch(std::size_t{1} << 20), large);
}

TEST(ThreadScratch, AnImpossibleSizeIsRefused) {
  EXPECT_THROW(thread_scratch(SIZE_MAX), ResourceExhausted);
  EXPECT_THROW(thread_scratch(SIZE_MAX / 2), ResourceExhausted);
}

}  // namespace
}  // namespace cairn
