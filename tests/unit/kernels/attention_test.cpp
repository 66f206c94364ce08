// Paged attention against a double-precision loop, and bit for bit between decode, prefill, chunks, batches and
// thread counts.
#include "kernels/cpu/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "tests/unit/kernels/kernel_test_util.hpp"

namespace cairn::kernels {
namespace {

// A pool of pages filled with NaN, and one request's page table in scrambled order.
class PagedCache {
 public:
  PagedCache(const KvLayout& layout, std::int64_t tokens, std::uint32_t seed) : layout_(layout) {
    const std::int64_t count = (tokens + layout.page_size - 1) / layout.page_size;
    stride_ = kv_page_bytes(layout) + 64;
    memory_.assign(static_cast<std::size_t>(count + 1) * stride_ + 64, 0xFF);
    pages_.resize(static_cast<std::size_t>(count));
    std::iota(pages_.begin(), pages_.end(), 1);
    std::shuffle(pages_.begin(), pages_.end(), std::mt19937(seed));
  }
  void* base() { return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 63) / 64 * 64); }
  std::size_t stride() const { return stride_; }
  const std::int32_t* pages() const { return pages_.data(); }
  std::int64_t slot(std::int64_t position) const {
    return pages_[static_cast<std::size_t>(position / layout_.page_size)] * layout_.page_size +
           position % layout_.page_size;
  }
  void write(const std::vector<float>& k, const std::vector<float>& v, std::int64_t begin, std::int64_t end) {
    const std::int64_t width = layout_.kv_heads * layout_.head_dim;
    std::vector<std::int64_t> slots;
    for (std::int64_t p = begin; p < end; ++p) slots.push_back(slot(p));
    kv_write(layout_, base(), stride_, k.data() + begin * width, width, v.data() + begin * width, width, slots.data(),
             end - begin, serial());
  }

 private:
  KvLayout layout_;
  std::size_t stride_;
  std::vector<std::uint8_t> memory_;
  std::vector<std::int32_t> pages_;
};

float rounded(KvType type, float v) {
  if (type == KvType::kF16) return f16_to_f32(f32_to_f16(v));
  return type == KvType::kBF16 ? bf16_to_f32(f32_to_bf16(v)) : v;
}

struct Problem {
  KvLayout layout;
  AttentionParams params;
  std::int64_t tokens;
  std::vector<float> q, k, v;

  Problem(const KvLayout& l, const AttentionParams& p, std::int64_t n, std::uint32_t seed)
      : layout(l), params(p), tokens(n) {
    q = random_floats(static_cast<std::size_t>(n * p.q_heads * l.head_dim), seed);
    k = random_floats(static_cast<std::size_t>(n * l.kv_heads * l.head_dim), seed + 1);
    v = random_floats(static_cast<std::size_t>(n * l.kv_heads * l.head_dim), seed + 2);
    params.sm_scale = 1.0F / std::sqrt(static_cast<float>(l.head_dim));
  }
  std::int64_t width() const { return params.q_heads * layout.head_dim; }

  // Query token `t` over keys [0, kv_len).
  std::vector<double> reference(std::int64_t t, std::int64_t kv_len) const {
    std::vector<double> out(static_cast<std::size_t>(width()));
    const std::int64_t group = params.q_heads / layout.kv_heads;
    for (std::int64_t h = 0; h < params.q_heads; ++h) {
      std::vector<double> s(static_cast<std::size_t>(kv_len), -std::numeric_limits<double>::infinity());
      double max = -std::numeric_limits<double>::infinity();
      for (std::int64_t j = 0; j < kv_len; ++j) {
        if (params.causal && j > t) continue;
        if (params.window > 0 && j <= t - params.window) continue;
        double dot = 0.0;
        for (std::int64_t d = 0; d < layout.head_dim; ++d) {
          dot +=
              static_cast<double>(q[static_cast<std::size_t>(t * width() + h * layout.head_dim + d)]) *
              static_cast<double>(rounded(
                  layout.type, k[static_cast<std::size_t>((j * layout.kv_heads + h / group) * layout.head_dim + d)]));
        }
        dot *= static_cast<double>(params.sm_scale);
        if (params.softcap > 0.0F) {
          dot = static_cast<double>(params.softcap) * std::tanh(dot / static_cast<double>(params.softcap));
        }
        s[static_cast<std::size_t>(j)] = dot;
        max = std::max(max, dot);
      }
      double total = 0.0;
      for (double& x : s) total += (x = std::exp(x - max));
      for (std::int64_t d = 0; d < layout.head_dim; ++d) {
        double sum = 0.0;
        for (std::int64_t j = 0; j < kv_len; ++j) {
          sum +=
              s[static_cast<std::size_t>(j)] *
              static_cast<double>(rounded(
                  layout.type, v[static_cast<std::size_t>((j * layout.kv_heads + h / group) * layout.head_dim + d)]));
        }
        out[static_cast<std::size_t>(h * layout.head_dim + d)] = sum / total;
      }
    }
    return out;
  }

  // Runs queries [begin, end) as one row whose context is [0, end).
  std::vector<float> run(PagedCache& cache, std::int64_t begin, std::int64_t end, const Parallel& parallel) const {
    const AttentionRow row{0, end - begin, end, cache.pages()};
    std::vector<std::uint8_t> scratch(
        attention_scratch_bytes(layout, params.q_heads, 1, end - begin, end, parallel.threads));
    std::vector<float> out(static_cast<std::size_t>((end - begin) * width()), -7.0F);
    attention(layout, cache.base(), cache.stride(), params, &row, 1, q.data() + begin * width(), width(), out.data(),
              width(), scratch.data(), parallel);
    return out;
  }
};

TEST(Attention, MatchesDoublePrecisionOnManyLayouts) {
  struct Case {
    KvLayout layout;
    AttentionParams params;
    std::int64_t tokens;
  };
  const std::vector<Case> cases = {
      {{3, 64, 16, KvType::kF16}, {9, 0, 0, 0, true}, 75},   {{1, 64, 32, KvType::kBF16}, {4, 0, 0, 0, true}, 40},
      {{2, 128, 64, KvType::kF32}, {2, 0, 0, 0, true}, 130}, {{2, 80, 16, KvType::kF16}, {14, 0, 0, 0, true}, 33},
      {{2, 20, 48, KvType::kF16}, {2, 0, 0, 0, false}, 70},  {{1, 96, 256, KvType::kF32}, {1, 0, 5.0F, 0, true}, 300},
      {{1, 64, 16, KvType::kF16}, {3, 0, 0, 37, true}, 600}, {{2, 7, 16, KvType::kBF16}, {4, 0, 3.0F, 5, true}, 50},
      {{1, 16, 16, KvType::kF32}, {1, 0, 0, 1, true}, 20}};
  std::uint32_t seed = 100;
  for (const Case& c : cases) {
    const Problem problem(c.layout, c.params, c.tokens, seed++);
    PagedCache cache(c.layout, c.tokens, seed);
    cache.write(problem.k, problem.v, 0, c.tokens);
    for_each_isa([&](Isa isa) {
      const auto out = problem.run(cache, 0, c.tokens, serial());
      for (std::int64_t t = 0; t < c.tokens; t += 7) {
        const auto expected = problem.reference(t, c.tokens);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          ASSERT_NEAR(out[static_cast<std::size_t>(t * problem.width()) + i], expected[i], 4e-6)
              << isa_name(isa) << " token " << t << " head_dim " << c.layout.head_dim;
        }
      }
    });
  }
}

TEST(Attention, DecodeChunksAndWholePrefillAgreeBitForBit) {
  const KvLayout layout{3, 64, 16, KvType::kF16};
  for (const AttentionParams params : {AttentionParams{9, 0, 0, 0, true}, AttentionParams{9, 0, 20.0F, 300, true}}) {
    const std::int64_t tokens = 700;
    const Problem problem(layout, params, tokens, 7);
    ThreadPool pool(4);
    std::vector<float> first;
    for_each_isa([&](Isa isa) {
      if (isa == Isa::kPortable) return;  // the same code; too slow for this many steps
      PagedCache cache(layout, tokens, 1);
      cache.write(problem.k, problem.v, 0, tokens);
      const auto whole = problem.run(cache, 0, tokens, pool.parallel());
      if (first.empty()) first = whole;
      EXPECT_TRUE(same_bits(first, whole)) << isa_name(isa);

      // Token by token, writing each before its step, so that later keys do not exist yet.
      PagedCache growing(layout, tokens, 2);
      std::vector<float> one_by_one;
      for (std::int64_t t = 0; t < tokens; ++t) {
        growing.write(problem.k, problem.v, t, t + 1);
        const auto step = problem.run(growing, t, t + 1, t % 2 == 0 ? pool.parallel() : serial());
        one_by_one.insert(one_by_one.end(), step.begin(), step.end());
      }
      EXPECT_TRUE(same_bits(whole, one_by_one)) << isa_name(isa);

      PagedCache chunked(layout, tokens, 3);
      std::vector<float> chunks;
      for (std::int64_t begin = 0; begin < tokens; begin += 97) {
        const std::int64_t end = std::min(begin + 97, tokens);
        chunked.write(problem.k, problem.v, begin, end);
        const auto part = problem.run(chunked, begin, end, pool.parallel());
        chunks.insert(chunks.end(), part.begin(), part.end());
      }
      EXPECT_TRUE(same_bits(whole, chunks)) << isa_name(isa);
    });
  }
}

TEST(Attention, EveryInstructionSetGivesTheSameBits) {
  for (const KvType type : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    const KvLayout layout{2, 72, 32, type};
    const Problem problem(layout, {6, 0, 0, 0, true}, 90, 11);
    PagedCache cache(layout, 90, 4);
    cache.write(problem.k, problem.v, 0, 90);
    std::vector<float> first;
    for_each_isa([&](Isa isa) {
      const auto out = problem.run(cache, 0, 90, serial());
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(first, out)) << isa_name(isa);
    });
  }
}

TEST(Attention, ARowInAMixedBatchEqualsTheRowAlone) {
  const KvLayout layout{3, 64, 16, KvType::kF16};
  const AttentionParams params{9, 0, 0, 0, true};
  const std::int64_t tokens = 520;
  const Problem problem(layout, params, tokens, 13);
  PagedCache cache(layout, tokens, 5);
  cache.write(problem.k, problem.v, 0, tokens);
  ThreadPool pool(3);
  // {first query, end}: decodes at several lengths, two prefill chunks, and an empty row.
  const std::vector<std::pair<std::int64_t, std::int64_t>> spans = {{0, 1},     {519, 520}, {10, 60}, {256, 257},
                                                                    {300, 301}, {100, 100}, {0, 5},   {255, 256}};
  std::vector<float> packed_q;
  std::vector<AttentionRow> rows;
  std::vector<float> expected;
  std::int64_t queries = 0;
  for (const auto& [begin, end] : spans) {
    rows.push_back({queries, end - begin, end, cache.pages()});
    queries += end - begin;
    packed_q.insert(packed_q.end(), problem.q.begin() + begin * problem.width(),
                    problem.q.begin() + end * problem.width());
    const auto alone = problem.run(cache, begin, end, serial());
    expected.insert(expected.end(), alone.begin(), alone.end());
  }
  for (const int threads : {1, 3}) {
    const Parallel parallel = threads == 1 ? serial() : pool.parallel();
    std::vector<std::uint8_t> scratch(
        attention_scratch_bytes(layout, 9, static_cast<std::int64_t>(rows.size()), queries, tokens, parallel.threads));
    std::vector<float> out(expected.size());
    Problem scaled = problem;
    attention(layout, cache.base(), cache.stride(), scaled.params, rows.data(), static_cast<std::int64_t>(rows.size()),
              packed_q.data(), problem.width(), out.data(), problem.width(), scratch.data(), parallel);
    EXPECT_TRUE(same_bits(out, expected)) << threads << " threads";
  }
}

TEST(Attention, NoKeysGiveZeros) {
  const KvLayout layout{1, 32, 16, KvType::kF16};
  const Problem problem(layout, {2, 0, 0, 0, false}, 1, 17);
  PagedCache cache(layout, 16, 6);
  const AttentionRow row{0, 1, 0, cache.pages()};
  std::vector<std::uint8_t> scratch(attention_scratch_bytes(layout, 2, 1, 1, 16, 1));
  std::vector<float> out(64, 3.0F);
  attention(layout, cache.base(), cache.stride(), problem.params, &row, 1, problem.q.data(), 64, out.data(), 64,
            scratch.data(), serial());
  EXPECT_EQ(out, std::vector<float>(64, 0.0F));
}

TEST(KvCache, ReadsBackWhatWasWrittenAndSkipsNegativeSlots) {
  for (const KvType type : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    const KvLayout layout{2, 24, 32, type};
    PagedCache cache(layout, 100, 8);
    const auto k = random_floats(3 * 48, 31);
    const auto v = random_floats(3 * 48, 32);
    const std::vector<std::int64_t> slots = {cache.slot(5), -1, cache.slot(77)};
    kv_write(layout, cache.base(), cache.stride(), k.data(), 48, v.data(), 48, slots.data(), 3, serial());
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
      std::vector<float> got_k(48);
      std::vector<float> got_v(48);
      kv_read(layout, cache.base(), cache.stride(), slots[i], got_k.data(), got_v.data());
      for (std::size_t d = 0; d < 48; ++d) {
        EXPECT_EQ(got_k[d], rounded(type, k[i * 48 + d]));
        EXPECT_EQ(got_v[d], rounded(type, v[i * 48 + d]));
      }
    }
  }
}

TEST(KvCache, CopiesAWholePage) {
  const KvLayout layout{2, 16, 16, KvType::kF16};
  PagedCache cache(layout, 64, 9);
  const auto k = random_floats(16 * 32, 41);
  const auto v = random_floats(16 * 32, 42);
  cache.write(k, v, 0, 16);
  const std::int64_t from = cache.slot(0) / 16;
  const std::int64_t to = cache.slot(48) / 16;
  kv_copy_page(layout, cache.base(), cache.stride(), from, to);
  for (std::int64_t t = 0; t < 16; ++t) {
    std::vector<float> k1(32), v1(32), k2(32), v2(32);
    kv_read(layout, cache.base(), cache.stride(), cache.slot(t), k1.data(), v1.data());
    kv_read(layout, cache.base(), cache.stride(), cache.slot(48 + t), k2.data(), v2.data());
    EXPECT_EQ(k1, k2);
    EXPECT_EQ(v1, v2);
    EXPECT_EQ(k1[3], rounded(KvType::kF16, k[static_cast<std::size_t>(t) * 32 + 3]));
  }
}

TEST(KvCache, HalfPrecisionSaturatesInsteadOfOverflowing) {
  const KvLayout layout{1, 16, 16, KvType::kF16};
  PagedCache cache(layout, 16, 10);
  const std::vector<float> big(16, 1e6F);
  const std::vector<float> small(16, -1e6F);
  const std::int64_t slot = cache.slot(3);
  kv_write(layout, cache.base(), cache.stride(), big.data(), 16, small.data(), 16, &slot, 1, serial());
  std::vector<float> k(16), v(16);
  kv_read(layout, cache.base(), cache.stride(), slot, k.data(), v.data());
  EXPECT_EQ(k, std::vector<float>(16, 65504.0F));
  EXPECT_EQ(v, std::vector<float>(16, -65504.0F));
}

TEST(KvCache, RefusesLayoutsOutsideTheBounds) {
  EXPECT_THROW(kv_page_bytes({1, 64, 8, KvType::kF16}), std::invalid_argument);
  EXPECT_THROW(kv_page_bytes({1, 64, 24, KvType::kF16}), std::invalid_argument);
  EXPECT_THROW(kv_page_bytes({1, 64, 272, KvType::kF16}), std::invalid_argument);
  EXPECT_THROW(kv_page_bytes({0, 64, 16, KvType::kF16}), std::invalid_argument);
  EXPECT_THROW(kv_page_bytes({1, 70000, 16, KvType::kF16}), std::invalid_argument);
  EXPECT_EQ(kv_page_bytes({3, 64, 16, KvType::kF16}), 3U * 2U * 16U * 64U * 2U);
}

}  // namespace
}  // namespace cairn::kernels
