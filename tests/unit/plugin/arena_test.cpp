// Step memory.
#include "core/plugin/arena.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace cairn {
namespace {

TEST(Arena, BlocksDoNotOverlapAndAreAligned) {
  Arena arena(256);
  struct Piece {
    unsigned char* data;
    std::size_t size;
    unsigned char mark;
  };
  std::vector<Piece> pieces;
  std::uint32_t random = 1;
  for (int i = 0; i < 2000; ++i) {
    random = random * 1664525U + 1013904223U;
    const std::size_t size = random >> 22;
    const std::size_t alignment = std::size_t{1} << (random >> 10) % 7;
    auto* data = static_cast<unsigned char*>(arena.alloc(size, alignment));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0U);
    const auto mark = static_cast<unsigned char>(i);
    std::memset(data, mark, size);
    pieces.push_back({data, size, mark});
  }
  for (const Piece& piece : pieces) {
    for (std::size_t i = 0; i < piece.size; ++i) ASSERT_EQ(piece.data[i], piece.mark);
  }
}

TEST(Arena, ASecondRoundOfTheSameRequestsTakesNoMoreMemory) {
  Arena arena(128);
  const auto round = [&] {
    for (int i = 0; i < 100; ++i) arena.alloc(100);
  };
  round();
  const std::size_t held = arena.capacity();
  for (int i = 0; i < 5; ++i) {
    arena.reset();
    EXPECT_EQ(arena.used(), 0U);
    round();
    EXPECT_EQ(arena.capacity(), held);
  }
}

TEST(Arena, ThePluginsEntryAnswersNullInsteadOfThrowing) {
  Arena arena;
  cairn_arena* table = arena.table();
  EXPECT_NE(table->alloc(table, 16, 16), nullptr);
  EXPECT_NE(table->alloc(table, 0, 1), nullptr);
  EXPECT_EQ(table->alloc(table, 16, 0), nullptr);
  EXPECT_EQ(table->alloc(table, 16, 3), nullptr);
  EXPECT_EQ(table->alloc(table, 16, 128), nullptr);
  EXPECT_EQ(table->alloc(table, UINT64_MAX, 16), nullptr);
  EXPECT_EQ(table->alloc(table, Arena::kMaxBytes, 16), nullptr);
  EXPECT_EQ(table->alloc(nullptr, 16, 16), nullptr);
}

TEST(Arena, KeptTensorsLiveUntilReset) {
  const std::int64_t before = Tensor::live_count();
  const std::int64_t shape[] = {4};
  Arena arena;
  arena.keep(Tensor::create(kFloat32, shape).release());
  arena.keep(Tensor::create(kFloat32, shape).release());
  EXPECT_EQ(Tensor::live_count(), before + 2);
  arena.reset();
  EXPECT_EQ(Tensor::live_count(), before);
  {
    Arena other;
    other.keep(Tensor::create(kFloat32, shape).release());
  }
  EXPECT_EQ(Tensor::live_count(), before);
}

TEST(Arena, OnlyItsOwnTablesAreRecognised) {
  Arena arena;
  cairn_arena foreign{sizeof(cairn_arena), [](cairn_arena*, std::uint64_t, std::uint64_t) -> void* { return nullptr; }};
  EXPECT_EQ(Arena::from_table(arena.table()), &arena);
  EXPECT_EQ(Arena::from_table(&foreign), nullptr);
  EXPECT_EQ(Arena::from_table(nullptr), nullptr);
}

}  // namespace
}  // namespace cairn
