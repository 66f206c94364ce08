// The SDK's values: tensors, NodeInputs.clone, ARNodeInputs.collate, request state, request info. The numbers in test
// names are those of the seeds' check-list.
#include <gtest/gtest.h>

#include "cairn/cairn.hpp"
#include "contract_host.hpp"

namespace {

using namespace cairn;

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  tensor.copy_to(values.data());
  return values;
}
std::vector<std::int64_t> shape(const Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}
Tensor matrix23() {
  return Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
}

TEST(TensorTest, NarrowOfAnInnerDimensionIsAStridedViewOfTheSameMemory) {
  const Tensor whole = matrix23();
  const Tensor part = whole.narrow(1, 1, 3);
  EXPECT_FALSE(part.compact());
  EXPECT_EQ(floats(part), (std::vector<float>{2, 3, 5, 6}));
  static_cast<float*>(whole.data())[4] = 50;
  EXPECT_EQ(floats(part), (std::vector<float>{2, 3, 50, 6}));
}

TEST(TensorTest, NarrowOfRowsStaysCompact) {
  const Tensor part = matrix23().narrow(0, 1, 2);
  EXPECT_TRUE(part.compact());
  EXPECT_EQ(floats(part), (std::vector<float>{4, 5, 6}));
}

TEST(TensorTest, NarrowOutsideIsRefused) {
  EXPECT_THROW(matrix23().narrow(0, 1, 3), std::out_of_range);
  EXPECT_THROW(matrix23().narrow(2, 0, 0), std::out_of_range);
  EXPECT_THROW(matrix23().narrow(0, -1, 1), std::out_of_range);
}

TEST(TensorTest, CloneIsDetached) {
  const Tensor whole = matrix23();
  const Tensor copy = whole.narrow(1, 0, 1).clone();
  static_cast<float*>(whole.data())[0] = 9;
  EXPECT_EQ(floats(copy), (std::vector<float>{1, 4}));
}

TEST(TensorTest, ValuesOfAnotherTypeAreRefused) {
  EXPECT_THROW(matrix23().values<const std::int32_t>(), std::invalid_argument);
}

TEST(TensorTest, ShapeThatDoesNotFitTheValuesIsRefused) {
  EXPECT_THROW(Tensor::of<float>({1, 2, 3}, {2, 2}), std::invalid_argument);
}

TEST(TensorTest, BorrowingHoldsAReferenceToTheOwner) {
  services() = Services::from(contract::host());
  contract::HostTensor owner({1, 2});
  {
    const Tensor borrowed = Tensor::borrow(owner.view());
    const Tensor second = borrowed;
    EXPECT_EQ(owner.references, 2);
  }
  EXPECT_EQ(owner.references, 1);
}

TEST(TensorTest, InAnArenaOwnMemoryIsCopiedAndHostMemoryIsNot) {
  services() = Services::from(contract::host());
  contract::Arena memory;
  const Arena arena(&memory);
  contract::HostTensor owner({1, 2});
  EXPECT_EQ(Tensor::borrow(owner.view()).in(arena).data, owner.values.data());
  const Tensor own = matrix23();
  const cairn_tensor_view copied = own.in(arena);
  EXPECT_NE(copied.data, own.data());
  EXPECT_EQ(static_cast<float*>(copied.data)[5], 6.0F);
  EXPECT_EQ(copied.owner, nullptr);
}

TEST(NodeInputsTest, Defaults1To5) {
  const NodeInputs inputs;
  EXPECT_TRUE(inputs.tensor_inputs.empty());
  EXPECT_TRUE(inputs.kwargs.empty());
  EXPECT_EQ(inputs.resource_step_info, nullptr);
  EXPECT_EQ(inputs.input_seq_len, 0);
  EXPECT_FALSE(inputs.graph_walk.has_value());
}

TEST(NodeInputsTest, Clone6CopiesTensorsEverywhereAndKeepsTheClass) {
  ARNodeInputs row;
  row.input_embeds = matrix23();
  row.tensor_inputs["mask"] = matrix23();
  row.kwargs = {{"nested", ValueMap{{"deep", ValueList{Value(matrix23())}}}}, {"n", 3}};
  row.input_seq_len = 2;
  const std::unique_ptr<NodeInputs> copy = row.clone();
  static_cast<float*>(row.input_embeds.data())[0] = 77;
  static_cast<float*>(row.tensor_inputs["mask"].data())[0] = 77;
  const auto deep = [](const NodeInputs& inputs) {
    return inputs.kwargs.find("nested")->get<ValueMap>().find("deep")->get<ValueList>()[0].get<Tensor>();
  };
  static_cast<float*>(deep(row).data())[0] = 77;
  auto* cloned = dynamic_cast<ARNodeInputs*>(copy.get());
  ASSERT_NE(cloned, nullptr);
  EXPECT_EQ(floats(cloned->input_embeds)[0], 1);
  EXPECT_EQ(floats(cloned->tensor_inputs.at("mask"))[0], 1);
  EXPECT_EQ(floats(deep(*cloned))[0], 1);
  EXPECT_EQ(cloned->kwargs.integer("n", 0), 3);
  EXPECT_EQ(cloned->input_seq_len, 2);
}

class CollateTest : public testing::Test {
 protected:
  CollateTest() {
    first_.input_ids = Tensor::of<std::int32_t>({1, 2}, {2});
    first_.tensor_inputs["mask"] = Tensor::of<float>({1, 1}, {2});
    first_.kwargs = {{"scale", 0.5}};
    second_.input_ids = Tensor::of<std::int32_t>({3, 4}, {2});
    second_.tensor_inputs["mask"] = Tensor::of<float>({2, 2}, {2});
    second_.kwargs = {{"scale", 0.25}};
  }
  Collated collate(StackingMethod method) const {
    const ARNodeInputs* rows[] = {&first_, &second_};
    return ARNodeInputs::collate(rows, method);
  }
  ARNodeInputs first_, second_;
};

TEST_F(CollateTest, None9KeepsListsUnderTheirOwnNames) {
  const Collated all = collate(StackingMethod::NONE);
  EXPECT_TRUE(all.joined.empty());
  EXPECT_EQ(all.lists.at("input_ids").size(), 2u);
  EXPECT_EQ(all.lists.at("mask").size(), 2u);
  EXPECT_EQ(all.values.at("scale")[1].get<double>(), 0.25);
}

TEST_F(CollateTest, Stack9AddsAnOuterDimension) {
  const Collated all = collate(StackingMethod::STACK);
  EXPECT_EQ(shape(all.joined.at("input_ids")), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(floats(all.joined.at("mask")), (std::vector<float>{1, 1, 2, 2}));
}

TEST_F(CollateTest, Cat9JoinsAlongTheOutermostDimensionWhateverItsLength) {
  second_.input_ids = Tensor::of<std::int32_t>({3, 4, 5}, {3});
  const Collated all = collate(StackingMethod::CAT);
  EXPECT_EQ(shape(all.joined.at("input_ids")), (std::vector<std::int64_t>{5}));
  const auto ids = all.joined.at("input_ids").values<const std::int32_t>();
  EXPECT_EQ((std::vector<std::int32_t>(ids.begin(), ids.end())), (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
}

TEST_F(CollateTest, ShapesThatDoNotFit9StayAList) {
  second_.input_ids = Tensor::of<std::int32_t>({3}, {1});
  const Collated all = collate(StackingMethod::STACK);
  EXPECT_FALSE(all.joined.contains("input_ids"));
  EXPECT_EQ(all.lists.at("input_ids").size(), 2u);
  EXPECT_TRUE(all.joined.contains("mask"));
}

TEST(PerRequestStateTest, Add20MovesAKeyBetweenTheKinds) {
  PerRequestState state;
  state.add("x", 3);
  EXPECT_TRUE(state.kwargs.contains("x"));
  state.add("x", matrix23());
  EXPECT_FALSE(state.kwargs.contains("x"));
  EXPECT_TRUE(state.tensors.contains("x"));
  state.add("x", "text");
  EXPECT_FALSE(state.tensors.contains("x"));
  EXPECT_EQ(state["x"].get<std::string>(), "text");
}

TEST(PerRequestStateTest, AddAll21Remove22Get23) {
  PerRequestState state;
  state.add_all({{"a", 1}, {"b", 2}, {"c", matrix23()}});
  state.remove("a");
  state.remove({"c", "not there"});
  EXPECT_FALSE(state.contains("a"));
  EXPECT_FALSE(state.contains("c"));
  EXPECT_EQ(state.get("b").get<std::int64_t>(), 2);
  EXPECT_EQ(state.get("a", 7).get<std::int64_t>(), 7);
  EXPECT_TRUE(state.get("a").is_none());
  EXPECT_THROW(state["a"], std::out_of_range);
}

TEST(LazyRequestStatesTest, IsAMappingOverTheStepThatCreatesOnFirstRead25) {
  services() = {};  // no request service: states are kept by the SDK
  RequestStates states(nullptr);
  const std::vector<Request> step = {5, -2};
  const LazyRequestStates lazy(states, step);
  EXPECT_EQ(lazy.size(), 2u);
  std::vector<Request> seen(lazy.begin(), lazy.end());
  EXPECT_EQ(seen, step);
  EXPECT_EQ(states.local_size(), 0u);
  lazy[-2].add("n", 1);
  EXPECT_EQ(states.local_size(), 1u);
  EXPECT_EQ(lazy[-2].get("n").get<std::int64_t>(), 1);
  EXPECT_THROW(lazy[6], std::out_of_range);
  EXPECT_EQ(states.local_size(), 1u);
}

TEST(RequestInfoTest, AShorterStructOfAnOlderHostReadsAsZero101) {
  cairn_forward_info info{};
  info.struct_size = CAIRN_SIZE(cairn_forward_info, max_tokens);
  info.request = 7;
  info.max_tokens = 12;
  info.prompt_tokens = 99;               // behind the given size: must not be read
  info.step_metadata = {nullptr, 1000};  // would crash
  info.loop_stop_times = {nullptr, 1000, 8};
  const CurrentForwardPassInfo read(info);
  EXPECT_EQ(read.request, 7);
  EXPECT_EQ(read.max_tokens, 12);
  EXPECT_EQ(read.prompt_tokens, 0);
  EXPECT_TRUE(read.step_metadata.empty());
  EXPECT_EQ(read.resource_config(0), nullptr);
}

TEST(RequestInfoTest, ClearLoopStopInfo102EmptiesBothMaps) {
  CurrentForwardPassInfo info;
  info.loop_stop_times[0].forward_index = 3;
  info.dynamic_loop_iter_counts[0] = 4;
  info.clear_loop_stop_info();
  EXPECT_TRUE(info.loop_stop_times.empty());
  EXPECT_TRUE(info.dynamic_loop_iter_counts.empty());
}

TEST(RequestInfoTest, MergePublishInfo107UpdatesWhatIsHeldAndTakesWhatIsNew) {
  PublishedInfos held, other;
  held[0].info = {{"a", 1}, {"b", 2}};
  other[0].info = {{"b", 3}};
  other[1].info = {{"c", 4}};
  merge_publish_info(held, other);
  EXPECT_EQ(held[0].info.integer("a", 0), 1);
  EXPECT_EQ(held[0].info.integer("b", 0), 3);
  EXPECT_EQ(held[1].info.integer("c", 0), 4);
}

TEST(RequestInfoTest, ConductorMetadataSurvivesTheBoundary100) {
  contract::Arena memory;
  CurrentForwardConductorMetadata metadata(3, true);
  metadata.input_modalities = {0, 2};
  metadata.kwargs = {{"cfg", 4.5}, {"who", "me"}};
  const CurrentForwardConductorMetadata back(metadata.in(Arena(&memory)));
  EXPECT_EQ(back.graph_walk, 3u);
  EXPECT_TRUE(back.is_prefill);
  EXPECT_EQ(back.input_modalities, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(back.kwargs.real("cfg", 0), 4.5);
  EXPECT_EQ(back.kwargs.string("who", ""), "me");
}

TEST(ValueTest, EveryKindSurvivesTheBoundary) {
  contract::Arena memory;
  const Arena arena(&memory);
  const Value value(ValueMap{{"none", Value()},
                             {"flag", true},
                             {"number", std::int64_t{1} << 40},
                             {"real", -0.5},
                             {"text", "h\xc3\xa9"},
                             {"bytes", Value::Bytes{std::byte{0}, std::byte{255}}},
                             {"list", ValueList{1, "two"}}});
  const Value back(value.in(arena));
  const ValueMap& map = back.get<ValueMap>();
  EXPECT_TRUE(map.find("none")->is_none());
  EXPECT_TRUE(map.boolean("flag", false));
  EXPECT_EQ(map.integer("number", 0), std::int64_t{1} << 40);
  EXPECT_EQ(map.real("real", 0), -0.5);
  EXPECT_EQ(map.string("text", ""), "h\xc3\xa9");
  EXPECT_EQ(map.find("bytes")->get<Value::Bytes>()[1], std::byte{255});
  EXPECT_EQ(map.find("list")->get<ValueList>()[1].get<std::string>(), "two");
  EXPECT_EQ(map.begin()->first, "none");  // order of insertion
}

TEST(ValueTest, UnknownKindReadsAsNone) {
  cairn_value value{};
  value.kind = 4711;
  EXPECT_TRUE(Value(value).is_none());
}

}  // namespace
