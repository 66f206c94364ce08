// Sampling: the generator's published vectors, greedy and penalties, the exact kept set against a sorting reference,
// and the distribution of draws.
#include "kernels/cpu/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "tests/unit/kernels/kernel_test_util.hpp"

namespace cairn::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int32_t sample_one(const std::vector<float>& logits, const SamplingRow& row) {
  const auto vocab = static_cast<std::int64_t>(logits.size());
  std::vector<std::uint8_t> scratch(sampling_scratch_bytes(vocab, 1));
  std::int32_t token = -2;
  sample(logits.data(), vocab, 1, vocab, &row, &token, scratch.data(), serial());
  return token;
}

TEST(Philox, MatchesThePublishedTestVectors) {
  // Random123, kat_vectors: philox4x32 10.
  const std::uint32_t zero[4] = {0, 0, 0, 0};
  std::uint32_t out[4];
  philox4x32(zero, zero, out);
  EXPECT_EQ((std::vector<std::uint32_t>(out, out + 4)),
            (std::vector<std::uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones[4] = {~0U, ~0U, ~0U, ~0U};
  philox4x32(ones, ones, out);
  EXPECT_EQ((std::vector<std::uint32_t>(out, out + 4)),
            (std::vector<std::uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  const std::uint32_t counter[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  const std::uint32_t key[2] = {0xa4093822, 0x299f31d0};
  philox4x32(counter, key, out);
  EXPECT_EQ((std::vector<std::uint32_t>(out, out + 4)),
            (std::vector<std::uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformNumbersFillTheUnitIntervalAndDifferByKey) {
  double sum = 0.0;
  for (std::uint64_t p = 0; p < 20000; ++p) {
    const double u = philox_uniform(42, p);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
  EXPECT_NE(philox_uniform(1, 2), philox_uniform(2, 2));
  EXPECT_NE(philox_uniform(1, 2), philox_uniform(1, 3));
  EXPECT_NE(philox_uniform(1, 2), philox_uniform(1ULL << 40, 2));
  EXPECT_NE(philox_uniform(1, 2), philox_uniform(1, 2, 1));
}

TEST(Argmax, TakesTheLowestIndexOnTiesAndIgnoresNotANumber) {
  for_each_isa([&](Isa isa) {
    for (const std::size_t n : {1U, 5U, 64U, 127U, 1000U, 49152U}) {
      auto x = random_floats(n, static_cast<std::uint32_t>(n));
      const auto best = std::max_element(x.begin(), x.end()) - x.begin();
      EXPECT_EQ(argmax(x.data(), static_cast<std::int64_t>(n)), best) << isa_name(isa);
      if (n < 64) continue;
      x[n - 2] = x[33] = x[40] = 99.0F;
      x[7] = std::nanf("");
      x[35] = std::nanf("");
      EXPECT_EQ(argmax(x.data(), static_cast<std::int64_t>(n)), 33) << isa_name(isa);
    }
    const std::vector<float> nothing = {-kInfinity, std::nanf("")};
    EXPECT_EQ(argmax(nothing.data(), 2), -1);
  });
}

TEST(Sample, TemperatureZeroIsArgmaxWhateverTheSeed) {
  std::vector<float> logits = {1.0F, 5.0F, 5.0F, 2.0F};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SamplingRow row;
    row.temperature = 0.0F;
    row.seed = seed;
    EXPECT_EQ(sample_one(logits, row), 1);
  }
}

TEST(Sample, EditsFollowTheirFormulas) {
  SamplingRow row;
  row.temperature = 0.0F;
  const std::vector<float> logits = {2.0F, 1.9F, -1.0F, -1.2F};
  EXPECT_EQ(sample_one(logits, row), 0);
  // Repetition: a positive logit is divided (2 / 1.5 = 1.33 < 1.9) ...
  const std::int32_t seen0[] = {0};
  row.repetition_penalty = 1.5F;
  row.seen = seen0;
  row.seen_count = 1;
  EXPECT_EQ(sample_one(logits, row), 1);
  // ... a negative one multiplied (-1 * 1.5 < -1.2); the same through the bitmap.
  const std::uint64_t bits = 0b0111;
  const std::int32_t banned01[] = {0, 1};
  row.seen_bits = &bits;
  row.banned = banned01;
  row.banned_count = 2;
  EXPECT_EQ(sample_one(logits, row), 3);

  SamplingRow counts;
  counts.temperature = 0.0F;
  const TokenCount occurred[] = {{0, 3}, {1, 1}, {77, 5}, {-1, 2}, {2, 0}};
  counts.counts = occurred;
  counts.counts_count = 5;
  counts.frequency_penalty = 0.1F;  // 2 - 0.3 < 1.9 - 0.1
  EXPECT_EQ(sample_one(logits, counts), 1);
  counts.frequency_penalty = 0.0F;
  counts.presence_penalty = 0.5F;  // both lose the same: 1.5 > 1.4
  EXPECT_EQ(sample_one(logits, counts), 0);
  counts.presence_penalty = 4.0F;  // -2 and -2.1 against an untouched -1
  EXPECT_EQ(sample_one(logits, counts), 2);

  SamplingRow biased;
  biased.temperature = 0.0F;
  const TokenBias bias[] = {{3, 100.0F}, {0, -1.0F}, {1000, 5.0F}};
  biased.bias = bias;
  biased.bias_count = 3;
  EXPECT_EQ(sample_one(logits, biased), 3);

  SamplingRow masked;
  masked.temperature = 0.0F;
  const std::uint64_t allowed = 0b1100;
  masked.allowed_bits = &allowed;
  EXPECT_EQ(sample_one(logits, masked), 2);
  const std::uint64_t none = 0;
  masked.allowed_bits = &none;
  EXPECT_EQ(sample_one(logits, masked), -1);
}

// The kept set by sorting, in double precision.
std::vector<std::int32_t> kept_by_sorting(const std::vector<float>& logits, const SamplingRow& row) {
  const std::size_t n = logits.size();
  const float max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p(n);
  for (std::size_t i = 0; i < n; ++i) {
    p[i] = std::exp((static_cast<double>(logits[i]) - static_cast<double>(max)) / static_cast<double>(row.temperature));
  }
  std::vector<std::int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return p[static_cast<std::size_t>(a)] > p[static_cast<std::size_t>(b)];
  });
  double mass = 0.0;
  std::vector<std::int32_t> candidates;
  for (const std::int32_t i : order) {
    if (row.min_p > 0.0F && p[static_cast<std::size_t>(i)] < static_cast<double>(row.min_p)) continue;
    candidates.push_back(i);
    mass += p[static_cast<std::size_t>(i)];
  }
  std::vector<std::int32_t> kept;
  double before = 0.0;
  for (const std::int32_t i : candidates) {
    if (row.top_k > 0 && kept.size() >= static_cast<std::size_t>(row.top_k)) break;
    if (row.top_p < 1.0F && !kept.empty() && before >= static_cast<double>(row.top_p) * mass) break;
    kept.push_back(i);
    before += p[static_cast<std::size_t>(i)];
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(Sample, DrawsExactlyFromTheKeptSetOfASortingReference) {
  std::uint32_t seed = 1;
  for (const std::size_t vocab : {1U, 7U, 40U, 300U}) {
    for (const float spread : {0.0F, 0.5F, 3.0F}) {
      for (const int top_k : {0, 1, 3, 1000}) {
        for (const float top_p : {1.0F, 0.83F, 0.31F, 0.0F}) {
          for (const float min_p : {0.0F, 0.21F}) {
            const auto logits = random_floats(vocab, seed++, spread);
            SamplingRow row;
            row.temperature = 0.9F;
            row.top_k = top_k;
            row.top_p = top_p;
            row.min_p = min_p;
            row.seed = seed;
            const auto expected = kept_by_sorting(logits, row);
            std::map<std::int32_t, int> drawn;
            for (std::uint64_t position = 0; position < 400; ++position) {
              row.position = position;
              ++drawn[sample_one(logits, row)];
            }
            for (const auto& [token, times] : drawn) {
              ASSERT_TRUE(std::binary_search(expected.begin(), expected.end(), token))
                  << token << " drawn, vocab " << vocab << " k " << top_k << " p " << top_p << " min " << min_p;
            }
            // Small sets are seen whole: each weight is at least a few percent of the largest.
            if (expected.size() <= 3 && spread < 1.0F) {
              ASSERT_EQ(drawn.size(), expected.size()) << "vocab " << vocab << " k " << top_k << " p " << top_p;
            }
          }
        }
      }
    }
  }
}

TEST(Sample, FrequenciesFollowTheDistribution) {
  const std::vector<double> p = {0.5, 0.25, 0.15, 0.07, 0.03};
  std::vector<float> logits;
  for (const double v : p) logits.push_back(static_cast<float>(std::log(v)));
  const int draws = 40000;
  struct Case {
    SamplingRow row;
    std::vector<double> expected;
  };
  std::vector<Case> cases(4);
  cases[0].expected = p;
  cases[1].row.top_p = 0.8F;  // 0.5 + 0.25 < 0.8: three stay
  cases[1].expected = {0.5 / 0.9, 0.25 / 0.9, 0.15 / 0.9, 0, 0};
  cases[2].row.top_k = 2;
  cases[2].expected = {2.0 / 3, 1.0 / 3, 0, 0, 0};
  cases[3].row.temperature = 0.5F;  // squares
  for (const double v : p)
    cases[3].expected.push_back(v * v / 0.3405 * (0.3405 / (0.25 + 0.0625 + 0.0225 + 0.0049 + 0.0009)));
  for (Case& c : cases) {
    c.row.seed = 99;
    std::vector<int> count(5, 0);
    for (int i = 0; i < draws; ++i) {
      c.row.position = static_cast<std::uint64_t>(i);
      ++count[static_cast<std::size_t>(sample_one(logits, c.row))];
    }
    for (std::size_t i = 0; i < 5; ++i) {
      // Five standard deviations of a binomial; exact zero where nothing may be drawn.
      const double e = c.expected[i];
      EXPECT_NEAR(count[i] / static_cast<double>(draws), e, 5.0 * std::sqrt(e * (1 - e) / draws)) << i;
    }
  }
}

TEST(Sample, ADrawDoesNotDependOnTheBatchThreadsOrInstructionSet) {
  const std::int64_t vocab = 3000;
  const std::int64_t n = 9;
  const auto logits = random_floats(static_cast<std::size_t>(n * vocab), 5, 2.0F);
  std::vector<SamplingRow> rows(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].seed = 1000 + i;
    rows[i].position = i * 3;
    rows[i].temperature = i % 4 == 3 ? 0.0F : 1.0F;
    if (i % 3 == 1) rows[i].top_p = 0.9F;
    if (i % 3 == 2) rows[i].top_k = 20;
  }
  ThreadPool pool(3);
  std::vector<std::int32_t> expected;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(i) * vocab;
    expected.push_back(sample_one({begin, begin + vocab}, rows[i]));
  }
  for_each_isa([&](Isa isa) {
    std::vector<std::int32_t> tokens(rows.size());
    std::vector<std::uint8_t> scratch(sampling_scratch_bytes(vocab, 3));
    sample(logits.data(), vocab, n, vocab, rows.data(), tokens.data(), scratch.data(), pool.parallel());
    EXPECT_EQ(tokens, expected) << isa_name(isa);
  });
}

TEST(Sample, ExtremeLogitsAndTemperaturesStayDefined) {
  SamplingRow row;
  row.seed = 3;
  EXPECT_EQ(sample_one({-kInfinity, -kInfinity}, row), -1);
  EXPECT_EQ(sample_one({std::nanf(""), std::nanf("")}, row), -1);
  EXPECT_EQ(sample_one({std::nanf(""), 1.0F, -kInfinity}, row), 1);
  EXPECT_EQ(sample_one({0.0F, kInfinity, kInfinity}, row), 1);
  row.temperature = 1e-40F;
  EXPECT_EQ(sample_one({1.0F, 3.0F, 2.0F}, row), 1);
  row.temperature = 1e30F;  // flat: any token, but a real one
  const std::int32_t token = sample_one({1.0F, -kInfinity, 2.0F}, row);
  EXPECT_TRUE(token == 0 || token == 2);
  row.temperature = 1.0F;
  row.top_k = 5;
  row.top_p = 0.5F;
  EXPECT_EQ(sample_one({-kInfinity, 4.0F}, row), 1);
}

TEST(Logprobs, MatchLogSoftmaxAndListTheBestInOrder) {
  for_each_isa([&](Isa isa) {
    for (const std::size_t vocab : {3U, 200U, 5000U}) {
      auto logits = random_floats(vocab, 6, 3.0F);
      logits[2] = logits[1];  // a tie: the lower index first
      double total = 0.0;
      for (const float v : logits) total += std::exp(static_cast<double>(v));
      std::vector<std::int32_t> order(vocab);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
      });
      std::vector<TokenLogprob> top(20);
      const float chosen = token_logprobs(logits.data(), static_cast<std::int64_t>(vocab), 2, 20, top.data());
      EXPECT_NEAR(chosen, static_cast<double>(logits[2]) - std::log(total), 3e-6) << isa_name(isa);
      for (std::size_t i = 0; i < 20; ++i) {
        if (i >= vocab) {
          EXPECT_EQ(top[i].token, -1);
          continue;
        }
        ASSERT_EQ(top[i].token, order[i]) << isa_name(isa) << " rank " << i << " of " << vocab;
        EXPECT_NEAR(top[i].logprob, static_cast<double>(logits[static_cast<std::size_t>(order[i])]) - std::log(total),
                    3e-6);
      }
    }
  });
}

}  // namespace
}  // namespace cairn::kernels
