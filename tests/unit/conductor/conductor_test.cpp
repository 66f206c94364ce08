// The conductor's state machine, over a fake model.
#include "core/conductor/conductor.hpp"

#include <gtest/gtest.h>

#include "tests/unit/conductor/fake_model.hpp"

namespace cairn::testing {
namespace {

using Lines = std::vector<std::string>;
constexpr RequestHandle kRequest = 5;

class ConductorTest : public ::testing::Test {
 protected:
  ConductorTest() {
    builder = std::make_unique<ModelBuilder>(two_walk_model());
    sampler.struct_size = sizeof(sampler);
    sampler.vocab_size = 100;
    builder->resources.push_back({text("sampler"), CAIRN_RESOURCE_SAMPLER, 0, {&kLlm, 1}, &sampler, {}});
    spec = ModelSpec::from_desc(builder->desc());
    model.spec = &spec;
    request.id = "request-1";
  }

  std::vector<WalkStart> start(std::int64_t max_tokens = 10) {
    PromptResult prompt;
    prompt.tensors.push_back({kIds, number(42)});
    prompt.prompt_tokens = 3;
    return conductor.start_request({kRequest, request, std::move(prompt), max_tokens, 7, {2}});
  }
  Transition finish_walk(std::int64_t new_tokens, std::vector<SignalTensors> persisted = {}, std::uint64_t routed = 0) {
    return conductor.on_walk_done(kRequest, 0, {persisted, new_tokens, routed});
  }
  template <class Exception, class Body>
  std::string message_of(Body body) {
    try {
      body();
    } catch (const Exception& error) {
      return error.what();
    }
    return "no exception";
  }

  static constexpr std::uint32_t kLlm = 0;
  std::unique_ptr<ModelBuilder> builder;
  cairn_sampler_config sampler{};
  ModelSpec spec;
  FakeModel model;
  RequestSpec request;
  Conductor conductor{spec, model};
};

TEST_F(ConductorTest, StartsTheWalkThatTheModelNames) {
  const auto walks = start();
  ASSERT_EQ(walks.size(), 1U);
  EXPECT_EQ(walks[0].walk, kPrefill);
  EXPECT_EQ(walks[0].fwd_index, 0);
  ASSERT_EQ(walks[0].inputs.size(), 1U);
  EXPECT_EQ(walks[0].inputs[0].signal, kIds);
  EXPECT_EQ(show(walks[0].inputs[0].value), "1");
  EXPECT_EQ(model.asked_modalities, Indices{0});
  EXPECT_EQ(model.asked_input_signals, 1U);
  EXPECT_EQ(model.config_calls, 1);
  EXPECT_TRUE(conductor.has_request(kRequest));
  EXPECT_FALSE(conductor.request_done(kRequest));
}

TEST_F(ConductorTest, ShowsTheRequestInItsForwardInfo) {
  model.initial.step_metadata = OwnedMap::from_value(Value(ValueMap{{"steps", Value(4)}}), "test");
  start();
  const cairn_forward_info* info = conductor.info(kRequest, 0).view();
  EXPECT_EQ(info->request, kRequest);
  EXPECT_EQ(std::string(info->request_id.data, info->request_id.size), "request-1");
  EXPECT_EQ(info->graph_walk, kPrefill);
  EXPECT_EQ(info->random_seed, 7U);
  EXPECT_EQ(info->prompt_tokens, 3);
  EXPECT_EQ(info->max_tokens, 10);
  ASSERT_EQ(info->step_metadata.count, 1U);
  EXPECT_EQ(info->step_metadata.data[0].value.as.integer, 4);
  ASSERT_EQ(info->resource_configs.count, 1U);
  EXPECT_EQ(info->resource_configs.data[0].kind, static_cast<std::uint32_t>(CAIRN_RESOURCE_SAMPLER));
  ASSERT_NE(conductor.resource_configs(kRequest).sampling(0), nullptr);
  EXPECT_EQ(conductor.resource_configs(kRequest).sampling(0)->seed, 7U);
  EXPECT_EQ(conductor.resource_configs(kRequest).sampling(0)->stop_tokens.data[0], 2);
}

TEST_F(ConductorTest, TheInfoStaysInPlaceFromWalkToWalk) {
  start();
  const cairn_forward_info* info = conductor.info(kRequest, 0).view();
  model.answers.push_back(start_walk(kDecode, kNewToken, 8));
  finish_walk(1);
  EXPECT_EQ(conductor.info(kRequest, 0).view(), info);
  EXPECT_EQ(info->graph_walk, kDecode);
  EXPECT_EQ(info->fwd_index, 1);
}

TEST_F(ConductorTest, TellsTheModelWhatTheWalkLeft) {
  start();
  model.answers.push_back(start_walk(kDecode, kNewToken, 8));
  model.answers.push_back(done_args());
  const Transition next = finish_walk(1, {{kNewToken, number(8)}}, 0b10);
  EXPECT_EQ(next.kind, Transition::Kind::kNextWalk);
  EXPECT_EQ(next.next.walk, kDecode);
  EXPECT_EQ(next.next.fwd_index, 1);
  const Transition end = finish_walk(4, {{kNewToken, number(9)}}, 0b11);
  EXPECT_EQ(end.kind, Transition::Kind::kRequestDone);
  EXPECT_FALSE(end.length_limit);
  EXPECT_TRUE(conductor.request_done(kRequest));
  EXPECT_EQ(conductor.output_tokens(kRequest, 0), 5);
  EXPECT_EQ(model.transitions, (Lines{"walk 0 fwd 0 tokens 1 outputs 1 persisted 0=42 1=8",
                                      "walk 1 fwd 1 tokens 5 outputs 0 1 persisted 0=42 1=8 9"}))
      << "values persisted under one signal add up";
}

TEST_F(ConductorTest, UnpersistReleasesTheTensors) {
  const std::int64_t before = Tensor::live_count() - 1;  // the fake model holds the first walk's input
  start();
  ForwardPassArgs decode = start_walk(kDecode, kNewToken, 8);
  decode.unpersist = {kIds, kIds};
  model.answers.push_back(std::move(decode));
  model.answers.push_back(done_args());
  {
    const Transition next = finish_walk(1, {{kNewToken, number(8)}});
    EXPECT_EQ(Tensor::live_count() - before, 2) << "the persisted token and the input of the next walk";
  }
  finish_walk(1);
  EXPECT_EQ(model.transitions.back(), "walk 1 fwd 1 tokens 2 outputs persisted 1=8");
  EXPECT_EQ(Tensor::live_count(), before) << "a request that is done keeps nothing";
}

TEST_F(ConductorTest, EndsAtTheTokenLimit) {
  start(2);
  model.answers.push_back(start_walk(kDecode, kNewToken, 8));
  model.answers.push_back(start_walk(kDecode, kNewToken, 8));
  EXPECT_EQ(finish_walk(1).kind, Transition::Kind::kNextWalk);
  const Transition end = finish_walk(1);
  EXPECT_EQ(end.kind, Transition::Kind::kRequestDone);
  EXPECT_TRUE(end.length_limit);
}

TEST_F(ConductorTest, ARequestMayBeDoneAtOnce) {
  model.initial = done_args();
  EXPECT_TRUE(start().empty());
  EXPECT_TRUE(conductor.request_done(kRequest));
  EXPECT_THROW(finish_walk(0), InternalError);
}

// (M* defect: an exception in the conductor's model calls was only logged and the client hung.)
TEST_F(ConductorTest, AFailureOfTheModelReachesTheCallerWithItsMessage) {
  model.failure = "no such picture";
  EXPECT_EQ(message_of<InvalidArgument>([&] { start(); }), "no such picture");
  EXPECT_FALSE(conductor.has_request(kRequest));
  model.failure.clear();
  model.initial = start_walk(kPrefill, kIds, 1);
  start();
  model.failure = "broken";
  EXPECT_EQ(message_of<InternalError>([&] { finish_walk(1); }), "broken");
  EXPECT_TRUE(conductor.has_request(kRequest)) << "until the worker ends it";
  conductor.end_request(kRequest);
  EXPECT_EQ(conductor.open_requests(), 0U);
}

TEST_F(ConductorTest, RefusesAnswersThatDoNotFitTheGraph) {
  const auto refusal = [&](ForwardPassArgs args) {
    model.initial = std::move(args);
    const std::string message = message_of<InternalError>([&] { start(); });
    EXPECT_FALSE(conductor.has_request(kRequest));
    return message;
  };
  EXPECT_NE(refusal(start_walk(9, kIds, 1)).find("walk 9"), std::string::npos);
  const std::string wrong_signal = refusal(start_walk(kPrefill, kNewToken, 1));
  EXPECT_NE(wrong_signal.find("\"token\""), std::string::npos) << wrong_signal;
  EXPECT_NE(wrong_signal.find("\"llm\""), std::string::npos) << wrong_signal;
  ForwardPassArgs unknown_node = start_walk(kPrefill, kIds, 1);
  unknown_node.inputs[0].node = 77;
  EXPECT_NE(refusal(std::move(unknown_node)).find("node 77"), std::string::npos);
  ForwardPassArgs twice = start_walk(kPrefill, kIds, 1);
  twice.inputs.push_back({kLlm, kIds, number(2)});
  EXPECT_NE(refusal(std::move(twice)).find("twice"), std::string::npos);
  ForwardPassArgs none = start_walk(kPrefill, kIds, 1);
  none.inputs.clear();
  EXPECT_NE(refusal(std::move(none)).find("no inputs"), std::string::npos);
  ForwardPassArgs bad_unpersist = start_walk(kPrefill, kIds, 1);
  bad_unpersist.unpersist = {64};
  EXPECT_NE(refusal(std::move(bad_unpersist)).find("64"), std::string::npos);
}

TEST_F(ConductorTest, AnUnknownModalityIsTheClientsFault) {
  request.output_modalities = {"smell"};
  const std::string message = message_of<InvalidArgument>([&] { start(); });
  EXPECT_NE(message.find("\"smell\""), std::string::npos) << message;
  EXPECT_NE(message.find("text"), std::string::npos) << message;
}

TEST_F(ConductorTest, HandlesMustBeKnownAndUsedOnce) {
  start();
  EXPECT_THROW(start(), InternalError);
  EXPECT_THROW(conductor.info(6, 0), InternalError);
  EXPECT_THROW(conductor.info(kRequest, 1), InternalError);
  EXPECT_THROW(conductor.resource_configs(6), InternalError);
  conductor.end_request(kRequest);
  conductor.end_request(kRequest);
  EXPECT_THROW(finish_walk(0), InternalError);
}

TEST_F(ConductorTest, TheStepMetadataOfTheStartIsPartOfTheMetadata) {
  model.initial.metadata.kwargs = OwnedMap::from_value(Value(ValueMap{{"a", Value(1)}, {"b", Value(2)}}), "test");
  model.initial.step_metadata = OwnedMap::from_value(Value(ValueMap{{"b", Value(3)}}), "test");
  struct Checker final : ConductorModel {
    explicit Checker(FakeModel& inner) : fake(inner) {}
    PromptResult process_prompt(const RequestSpec& spec) override { return fake.process_prompt(spec); }
    ForwardPassArgs initial_forward_args(const InitialArgs& args) override { return fake.initial_forward_args(args); }
    ForwardPassArgs partition_forward_args(const TransitionArgs& args) override {
      a = args.metadata.kwargs.find("a")->as.integer;
      b = args.metadata.kwargs.find("b")->as.integer;
      return done_args();
    }
    ResourceReqConfigs request_resource_configs(const RequestConfigArgs& args) override {
      return fake.request_resource_configs(args);
    }
    FakeModel& fake;
    std::int64_t a = 0, b = 0;
  } checker(model);
  Conductor checked(spec, checker);
  checked.start_request({kRequest, request, {}, 10, 7, {}});
  checked.on_walk_done(kRequest, 0, {});
  EXPECT_EQ(checker.a, 1);
  EXPECT_EQ(checker.b, 3);
}

TEST(RequestSeed, IsTheClientsOrComesFromTheId) {
  SamplingParams sampling;
  // md5("") = d41d8cd98f00b204..., md5("abc") = 900150983cd24fb0... (RFC 1321); first four bytes, little-endian.
  EXPECT_EQ(request_seed(sampling, ""), 0xd98c1dd4U);
  EXPECT_EQ(request_seed(sampling, "abc"), 0x98500190U);
  sampling.has_seed = true;
  sampling.seed = 123456789012345ULL;
  EXPECT_EQ(request_seed(sampling, "abc"), 123456789012345ULL);
}

}  // namespace
}  // namespace cairn::testing
