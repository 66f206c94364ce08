// Per-request state.
#include "core/plugin/request_state.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"
#include "core/tensor/tensor.hpp"

namespace cairn {
namespace {

const auto* const kNode = reinterpret_cast<const cairn_node*>(0x1000);
const auto* const kOther = reinterpret_cast<const cairn_node*>(0x2000);

cairn_value integer(std::int64_t number) {
  cairn_value value{};
  value.kind = CAIRN_VALUE_INT;
  value.as.integer = number;
  return value;
}

void count_destroy(void* object) {
  ++*static_cast<int*>(object);
}

cairn_value opaque(int& counter) {
  cairn_value value{};
  value.kind = CAIRN_VALUE_OPAQUE;
  value.as.opaque = {&counter, count_destroy};
  return value;
}

TEST(RequestState, KeepsValuesApartByNodeRequestAndKey) {
  RequestStateStore store;
  store.add(kNode, 1, "a", integer(11));
  store.add(kOther, 1, "a", integer(21));
  store.add(kNode, 2, "a", integer(12));
  store.add(kNode, 1, "b", integer(13));
  EXPECT_EQ(store.get(kNode, 1, "a").as.integer, 11);
  EXPECT_EQ(store.get(kOther, 1, "a").as.integer, 21);
  EXPECT_EQ(store.get(kNode, 2, "a").as.integer, 12);
  EXPECT_EQ(store.get(kNode, 1, "b").as.integer, 13);
  EXPECT_EQ(store.live_values(), 4);
}

TEST(RequestState, CopiesDeeply) {
  RequestStateStore store;
  {
    std::string text = "a string that does not outlive this scope";
    cairn_value element{};
    element.kind = CAIRN_VALUE_STRING;
    element.as.string = to_abi_str(text);
    std::vector<cairn_value> list(2, element);
    cairn_value whole{};
    whole.kind = CAIRN_VALUE_LIST;
    whole.as.list = {list.data(), list.size()};
    store.add(kNode, 1, "list", whole);
    text.assign(text.size(), '#');
    list.clear();
  }
  const cairn_value back = store.get(kNode, 1, "list");
  ASSERT_EQ(back.kind, static_cast<std::uint32_t>(CAIRN_VALUE_LIST));
  ASSERT_EQ(back.as.list.count, 2U);
  EXPECT_EQ(from_abi_str(back.as.list.data[1].as.string), "a string that does not outlive this scope");
}

TEST(RequestState, RetainsTensorsUntilTheRequestIsDropped) {
  const std::int64_t before = Tensor::live_count();
  RequestStateStore store;
  {
    const std::int64_t shape[] = {2};
    const TensorPtr tensor = Tensor::create(kFloat32, shape);
    cairn_value value{};
    value.kind = CAIRN_VALUE_TENSOR;
    value.as.tensor = tensor->handle();
    store.add(kNode, 1, "t", value);
  }
  EXPECT_EQ(Tensor::live_count(), before + 1);
  store.drop_request(1);
  EXPECT_EQ(Tensor::live_count(), before);
  EXPECT_THROW(store.get(kNode, 1, "t"), NotFound);
}

TEST(RequestState, DestroysAnOpaqueObjectOnceWhateverEndsIt) {
  int replaced = 0;
  int removed = 0;
  int dropped = 0;
  int node_dropped = 0;
  int left = 0;
  {
    RequestStateStore store;
    store.add(kNode, 1, "replaced", opaque(replaced));
    store.add(kNode, 1, "replaced", integer(1));
    EXPECT_EQ(replaced, 1);
    store.add(kNode, 1, "removed", opaque(removed));
    store.remove(kNode, 1, "removed");
    EXPECT_EQ(removed, 1);
    store.add(kNode, 1, "dropped", opaque(dropped));
    store.drop_request(1);
    store.drop_request(1);
    EXPECT_EQ(dropped, 1);
    store.add(kOther, 2, "x", opaque(node_dropped));
    store.add(kNode, 2, "x", opaque(left));
    store.drop_node(kOther);
    EXPECT_EQ(node_dropped, 1);
    EXPECT_EQ(left, 0);
  }
  EXPECT_EQ(left, 1);
  EXPECT_EQ(replaced + removed + dropped + node_dropped, 4);
}

TEST(RequestState, AFailedAddLeavesTheOpaqueObjectToTheCaller) {
  int destroyed = 0;
  cairn_value bad{};
  bad.kind = CAIRN_VALUE_LIST;
  std::vector<cairn_value> elements{opaque(destroyed), {}};
  elements[1].kind = CAIRN_VALUE_STRING;
  elements[1].as.string = {nullptr, 5};
  bad.as.list = {elements.data(), elements.size()};
  {
    RequestStateStore store;
    EXPECT_THROW(store.add(kNode, 1, "bad", bad), InvalidArgument);
    EXPECT_THROW(store.add(kNode, 1, "", opaque(destroyed)), InvalidArgument);
    EXPECT_THROW(store.add(kNode, 1, std::string(1000, 'k'), opaque(destroyed)), InvalidArgument);
    EXPECT_THROW(store.get(kNode, 1, "bad"), NotFound);
    EXPECT_EQ(store.live_values(), 0);
  }
  EXPECT_EQ(destroyed, 0);
}

TEST(RequestState, RefusesValuesNestedTooDeeply) {
  RequestStateStore store;
  std::vector<cairn_value> chain(1000);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    chain[i].kind = CAIRN_VALUE_LIST;
    chain[i].as.list = {&chain[i + 1], 1};
  }
  EXPECT_THROW(store.add(kNode, 1, "deep", chain[0]), InvalidArgument);
}

}  // namespace
}  // namespace cairn
