// BatchedModelOutput, HostRows and StopCheck of the SDK. The numbers in test names are those of the seeds' check-list.
#include <gtest/gtest.h>

#include "cairn/cairn.hpp"
#include "contract_host.hpp"

namespace {

using namespace cairn;

constexpr Signal kToken = 1, kHidden = 2;

Tensor column(std::vector<std::int32_t> values) {
  const auto rows = static_cast<std::int64_t>(values.size());
  return Tensor::of<std::int32_t>(std::move(values), {rows, 1});
}
std::int32_t first(const Tensor& tensor) {
  return tensor.values<const std::int32_t>()[0];
}

TEST(BatchedModelOutputTest, Defaults26To34) {
  const BatchedModelOutput output;
  EXPECT_TRUE(output.per_rid_outputs.empty());
  EXPECT_TRUE(output.packed_outputs.empty());
  EXPECT_FALSE(output.check_stop_buffers.has_value());
  EXPECT_FALSE(output.row_outputs.has_value());
  EXPECT_FALSE(output.output_spans.has_value());
  EXPECT_TRUE(output.loopback_rids.empty());
  EXPECT_FALSE(output.rows_only);
}

TEST(BatchedModelOutputTest, Coerce38SortsPackedNamesFromRequests) {
  OutputDict dictionary;
  dictionary[Request{7}] = NameToTensorList{{kToken, {column({5})}}};
  dictionary[std::string("__hidden__")] = column({1, 2});
  const BatchedModelOutput output = BatchedModelOutput::coerce(std::move(dictionary));
  EXPECT_EQ(first(output.per_rid_outputs.at(7).at(kToken)[0]), 5);
  EXPECT_TRUE(output.packed_outputs.contains("__hidden__"));
}

TEST(BatchedModelOutputTest, Coerce38RefusesANameThatIsNeither) {
  OutputDict dictionary;
  dictionary[std::string("hidden")] = column({1});
  EXPECT_THROW(BatchedModelOutput::coerce(std::move(dictionary)), std::invalid_argument);
  OutputDict dunder;
  dunder[std::string("____")] = column({1});
  EXPECT_THROW(BatchedModelOutput::coerce(std::move(dunder)), std::invalid_argument);
}

TEST(BatchedModelOutputTest, Coerce38OfAnOutputIsItself) {
  BatchedModelOutput output;
  output.rows_only = true;
  EXPECT_TRUE(BatchedModelOutput::coerce(output).rows_only);
}

TEST(BatchedModelOutputTest, Get39LooksUpRequestsAndPackedNames) {
  BatchedModelOutput output;
  output.per_rid_outputs[3][kToken] = {column({8})};
  output.packed_outputs["__x__"] = column({9});
  EXPECT_NE(output.get(Request{3}), nullptr);
  EXPECT_EQ(first(*output.get(std::string("__x__"))), 9);
  EXPECT_EQ(output.get(Request{4}), nullptr);
  EXPECT_EQ(output.get(std::string("__y__")), nullptr);
}

TEST(BatchedModelOutputTest, Pop40TakesPerRequestOutputsOnly) {
  BatchedModelOutput output;
  output.per_rid_outputs[3][kToken] = {column({8})};
  output.row_outputs = std::map<Signal, Tensor>{{kToken, column({8, 9})}};
  const auto popped = output.pop(3);
  ASSERT_TRUE(popped.has_value());
  EXPECT_EQ(first(popped->at(kToken)[0]), 8);
  EXPECT_FALSE(output.pop(3).has_value());
  EXPECT_EQ(output.row_outputs->at(kToken).dim(0), 2);
}

TEST(BatchedModelOutputTest, CloneRowOutputs41CopiesTheRealRowsOnly) {
  BatchedModelOutput output;
  const Tensor rows = column({1, 2, 3, 4});
  output.row_outputs = std::map<Signal, Tensor>{{kToken, rows}};
  const auto clones = output.clone_row_outputs(2);
  static_cast<std::int32_t*>(rows.data())[0] = 99;
  EXPECT_EQ(clones.at(kToken).dim(0), 2);
  EXPECT_EQ(first(clones.at(kToken)), 1);
}

TEST(BatchedModelOutputTest, CloneCheckStopBuffers42ReusesTheRowClone) {
  BatchedModelOutput output;
  const Tensor rows = column({1, 2, 3});
  output.row_outputs = std::map<Signal, Tensor>{{kToken, rows}};
  output.check_stop_buffers = std::map<Signal, Tensor>{{kToken, rows}, {kHidden, rows}};
  const auto reuse = output.clone_row_outputs(2);
  const auto buffers = output.clone_check_stop_buffers(&reuse);
  ASSERT_TRUE(buffers.has_value());
  EXPECT_EQ(buffers->at(kToken).data(), reuse.at(kToken).data());
  EXPECT_EQ(buffers->at(kHidden).data(), reuse.at(kToken).data());
}

TEST(BatchedModelOutputTest, CloneCheckStopBuffers42ClonesOneMemoryOnceAndNoneStaysNone) {
  BatchedModelOutput output;
  EXPECT_FALSE(output.clone_check_stop_buffers().has_value());
  const Tensor rows = column({1, 2});
  output.check_stop_buffers = std::map<Signal, Tensor>{{kToken, rows}, {kHidden, rows}};
  const auto buffers = output.clone_check_stop_buffers();
  EXPECT_NE(buffers->at(kToken).data(), rows.data());
  EXPECT_EQ(buffers->at(kToken).data(), buffers->at(kHidden).data());
}

TEST(BatchedModelOutputTest, GetCheckStopInput43FallsBackToPerRequestOutputs) {
  BatchedModelOutput output;
  EXPECT_EQ(std::get<1>(output.get_check_stop_input()), &output.per_rid_outputs);
  output.check_stop_buffers.emplace();
  EXPECT_EQ(std::get<0>(output.get_check_stop_input()), &*output.check_stop_buffers);
}

TEST(BatchedModelOutputTest, Update44MergesAndKeepsStopBuffersOfOneSideOnly) {
  BatchedModelOutput mine, other;
  mine.per_rid_outputs[1][kToken] = {column({1})};
  other.per_rid_outputs[2][kToken] = {column({2})};
  other.packed_outputs["__x__"] = column({3});
  other.check_stop_buffers = std::map<Signal, Tensor>{{kToken, column({2})}};
  mine.update(other);
  EXPECT_EQ(mine.per_rid_outputs.size(), 2u);
  EXPECT_TRUE(mine.packed_outputs.contains("__x__"));
  ASSERT_TRUE(mine.check_stop_buffers.has_value());
  mine.update(other);  // both sides have some now
  EXPECT_FALSE(mine.check_stop_buffers.has_value());
}

TEST(BatchedModelOutputTest, CrossesTheBoundaryWithOneMemoryStayingOne) {
  contract::Arena memory;
  const Arena arena(&memory);
  const std::vector<Request> requests = {10, 20};
  BatchedModelOutput output;
  output.per_rid_outputs[20][kHidden] = {column({5}), column({6})};
  const Tensor rows = column({1, 2});
  output.row_outputs = std::map<Signal, Tensor>{{kToken, rows}};
  output.check_stop_buffers = std::map<Signal, Tensor>{{kToken, rows}};
  output.loopback_rids = {20};
  cairn_batched_output crossed{};
  to_abi(output, requests, arena, crossed);
  EXPECT_EQ(crossed.row_outputs.data->view.data, crossed.check_stop_buffers.data->view.data);
  EXPECT_EQ(crossed.loopback_rids[0], 0);
  EXPECT_EQ(crossed.loopback_rids[1], 1);
  const BatchedModelOutput back = from_abi(crossed, requests);
  ASSERT_EQ(back.per_rid_outputs.size(), 1u);
  EXPECT_EQ(first(back.per_rid_outputs.at(20).at(kHidden)[1]), 6);
  EXPECT_EQ(back.row_outputs->at(kToken).dim(0), 2);
  EXPECT_EQ(back.loopback_rids, (std::set<Request>{20}));
}

TEST(BatchedModelOutputTest, AnOutputOfAStrangerIsRefused) {
  contract::Arena memory;
  const std::vector<Request> requests = {10};
  BatchedModelOutput output;
  output.per_rid_outputs[11][kToken] = {column({5})};
  cairn_batched_output crossed{};
  EXPECT_THROW(to_abi(output, requests, Arena(&memory), crossed), std::invalid_argument);
}

TEST(HostRowsTest, FirstValues15PairsRequestsWithTheirRows) {
  HostRows rows;
  rows.request_ids = {10, 20, 30};
  rows.buffers[kToken] = Tensor::of<std::int32_t>({1, -1, 2, -2, 3, -3, 9, -9}, {4, 2});  // one padding row
  const auto values = rows.first_values(kToken, {30, 10, 99});
  ASSERT_TRUE(values.has_value());
  EXPECT_EQ(*values, (std::vector<std::pair<Request, std::int64_t>>{{30, 3}, {10, 1}}));
}

TEST(HostRowsTest, FirstValues15IsNothingWithoutTheBuffer) {
  HostRows rows;
  rows.request_ids = {10};
  EXPECT_FALSE(rows.first_values(kToken, {10}).has_value());
}

TEST(HostRowsTest, FirstValues15ReadsEveryNumberType) {
  HostRows rows;
  rows.request_ids = {10};
  rows.buffers[0] = Tensor::of<std::int64_t>({std::int64_t{1} << 40}, {1});
  rows.buffers[1] = Tensor::of<float>({0.5F}, {1});
  rows.buffers[2] = Tensor::of<std::uint8_t>({200}, {1});
  EXPECT_EQ(rows.first_values(0, {10})->at(0).second, std::int64_t{1} << 40);
  EXPECT_EQ(rows.first_values<double>(1, {10})->at(0).second, 0.5);
  EXPECT_EQ(rows.first_values(2, {10})->at(0).second, 200);
}

TEST(StopCheckTest, APlainSet18IsAStopCheck) {
  const StopCheck check = std::set<LoopIndex>{2};
  EXPECT_EQ(check.stops, (std::set<LoopIndex>{2}));
  EXPECT_TRUE(check.withheld.empty());
  EXPECT_TRUE(StopCheck().stops.empty());
}

TEST(StopCheckTest, BitsNameLoopsAndRefuseAnIndexWithoutABit) {
  EXPECT_EQ(bits_of(std::set<LoopIndex>{0, 3, 63}), 0x8000000000000009u);
  EXPECT_THROW(bits_of(std::set<LoopIndex>{64}), std::out_of_range);
}

}  // namespace
