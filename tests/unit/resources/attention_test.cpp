// Attention over the pool's pages against a plain loop in double precision, and the rows layers select.
#include "core/resources/attention/attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/error.hpp"
#include "step_fixture.hpp"

namespace cairn {
namespace {

using testing::FloatTensor;
using testing::needs;
using testing::small_pool;
using testing::StepFixture;

constexpr RequestHandle kA = (RequestHandle{1} << 32) | 0;
constexpr std::int64_t kHeadDim = 16;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kHeads = 4;

void fill(FloatTensor& tensor, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (float& value : tensor.values) value = normal(random);
}

TEST(Attention, AgreesWithAPlainLoopOverAPromptAndADecodeStep) {
  KvPool pool("kv", 0, small_pool(8));
  Attention attention("attn", 1, {kHeads, 0.25F, 0.0F, 0}, pool);
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(40, 1), why), ReserveOutcome::kReserved);
  std::mt19937 random(11);
  constexpr std::int64_t kTokens = 38;
  FloatTensor q(kTokens, kHeads * kHeadDim);
  FloatTensor k(kTokens, kKvHeads * kHeadDim);
  FloatTensor v(kTokens, kKvHeads * kHeadDim);
  fill(q, random);
  fill(k, random);
  fill(v, random);
  FloatTensor out(kTokens, kHeads * kHeadDim);
  std::int64_t done = 0;
  for (const std::int64_t span : {std::int64_t{37}, std::int64_t{1}}) {
    StepFixture step({kA}, {span});
    pool.admit(step.step(), step.context());
    pool.plan(step.step(), step.context());
    attention.plan(step.step(), step.context());
    const auto cut = [&](FloatTensor& tensor, std::int64_t width) {
      cairn_tensor_view view = tensor.view;
      view.data = tensor.values.data() + done * width;
      return view;
    };
    std::int64_t shape_q[2] = {span, kHeads * kHeadDim};
    std::int64_t shape_k[2] = {span, kKvHeads * kHeadDim};
    cairn_tensor_view q_view = cut(q, shape_q[1]);
    cairn_tensor_view k_view = cut(k, shape_k[1]);
    cairn_tensor_view v_view = cut(v, shape_k[1]);
    cairn_tensor_view out_view = cut(out, shape_q[1]);
    q_view.shape = out_view.shape = shape_q;
    k_view.shape = v_view.shape = shape_k;
    attention.run(0, 0, &q_view, &k_view, &v_view, &out_view, step.context());
    pool.commit(step.step(), step.context());
    done += span;
  }
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const std::int64_t kv_head = head / (kHeads / kKvHeads);
      std::vector<double> weight(static_cast<std::size_t>(t) + 1);
      double total = 0;
      for (std::int64_t s = 0; s <= t; ++s) {
        double dot = 0;
        for (std::int64_t d = 0; d < kHeadDim; ++d) {
          dot += static_cast<double>(q.values[static_cast<std::size_t>((t * kHeads + head) * kHeadDim + d)]) *
                 k.values[static_cast<std::size_t>((s * kKvHeads + kv_head) * kHeadDim + d)];
        }
        total += weight[static_cast<std::size_t>(s)] = std::exp(0.25 * dot);
      }
      for (std::int64_t d = 0; d < kHeadDim; ++d) {
        double expected = 0;
        for (std::int64_t s = 0; s <= t; ++s) {
          expected += weight[static_cast<std::size_t>(s)] / total *
                      v.values[static_cast<std::size_t>((s * kKvHeads + kv_head) * kHeadDim + d)];
        }
        EXPECT_NEAR(out.values[static_cast<std::size_t>((t * kHeads + head) * kHeadDim + d)], expected, 1e-4);
      }
    }
  }
}

TEST(Attention, SelectsTheLastTokenOfEverySegment) {
  KvPool pool("kv", 0, small_pool(8));
  Attention attention("attn", 1, {kHeads, 0.25F, 0.0F, 0}, pool);
  constexpr RequestHandle kB = (RequestHandle{1} << 32) | 1;
  std::string why;
  pool.reserve(kA, needs(10, 0), why);
  pool.reserve(kB, needs(10, 0), why);
  StepFixture step({kA, kB}, {3, 2});
  pool.admit(step.step(), step.context());
  pool.plan(step.step(), step.context());
  FloatTensor hidden(5, 1);
  for (std::size_t i = 0; i < 5; ++i) hidden.values[i] = static_cast<float>(i);
  FloatTensor out(2, 1);
  attention.select_last_hidden(0, &hidden.view, &out.view);
  EXPECT_EQ(out.values, (std::vector<float>{2.0F, 4.0F}));
  cairn_tensor_view indptr{};
  attention.qo_indptr(0, &indptr, step.context());
  const auto* data = static_cast<const std::int64_t*>(indptr.data);
  EXPECT_EQ((std::vector<std::int64_t>(data, data + 3)), (std::vector<std::int64_t>{0, 3, 5}));
}

TEST(Attention, NamesTheArgumentAndTheShapeThatDoNotFit) {
  KvPool pool("kv", 0, small_pool(8));
  Attention attention("attn", 1, {kHeads, 0.25F, 0.0F, 0}, pool);
  std::string why;
  pool.reserve(kA, needs(10, 0), why);
  StepFixture step({kA}, {3});
  pool.admit(step.step(), step.context());
  pool.plan(step.step(), step.context());
  FloatTensor q(2, kHeads * kHeadDim);
  FloatTensor k(3, kKvHeads * kHeadDim);
  try {
    attention.run(0, 0, &q.view, &k.view, &k.view, &q.view, step.context());
    FAIL() << "two rows of q for three tokens must be refused";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("attention.run: q is [2, 64]"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace cairn
