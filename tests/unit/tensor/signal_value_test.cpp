// SignalValue: a list that holds one tensor in place.
#include "core/tensor/signal_value.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace cairn {
namespace {

TensorPtr tensor_of(std::int64_t size) {
  return Tensor::create(kInt32, std::array{size});
}

std::vector<std::int64_t> sizes(const SignalValue& value) {
  std::vector<std::int64_t> result;
  for (const TensorPtr& tensor : value) result.push_back(tensor->elements());
  return result;
}

using Sizes = std::vector<std::int64_t>;

TEST(SignalValue, GrowsFromNoneOverOneToMany) {
  SignalValue value;
  EXPECT_TRUE(value.empty());
  for (std::int64_t i = 1; i <= 5; ++i) {
    value.push_back(tensor_of(i));
    EXPECT_EQ(value.size(), static_cast<std::size_t>(i));
    EXPECT_EQ(value.front()->elements(), 1);
    EXPECT_EQ(value[static_cast<std::size_t>(i) - 1]->elements(), i);
  }
  value.clear();
  EXPECT_TRUE(value.empty());
  value.push_back(tensor_of(9));
  EXPECT_EQ(sizes(value), Sizes{9});
}

TEST(SignalValue, CopiesAndMoves) {
  const std::int64_t before = Tensor::live_count();
  {
    SignalValue many{tensor_of(1), tensor_of(2), tensor_of(3)};
    SignalValue copy = many;
    EXPECT_EQ(sizes(copy), (Sizes{1, 2, 3}));
    EXPECT_EQ(copy[1].get(), many[1].get());
    SignalValue moved = std::move(many);
    EXPECT_TRUE(many.empty());  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(sizes(moved), (Sizes{1, 2, 3}));
    SignalValue one(tensor_of(7));
    moved = one;
    EXPECT_EQ(sizes(moved), Sizes{7});
    copy = std::move(moved);
    EXPECT_EQ(sizes(copy), Sizes{7});
    EXPECT_EQ(sizes(one), Sizes{7});
    one.insert(one.end(), copy.begin(), copy.end());
    EXPECT_EQ(sizes(one), (Sizes{7, 7}));
  }
  EXPECT_EQ(Tensor::live_count(), before);
}

}  // namespace
}  // namespace cairn
