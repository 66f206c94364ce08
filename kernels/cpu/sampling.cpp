// Token choice and log-probabilities; see sampling.hpp.
//
// Nothing is sorted: the top-k / top-p boundary is found by three histogram passes over the bits of the
// probabilities, which order like the numbers, and ties inside the last bucket are settled by index.
#include "kernels/cpu/sampling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/softmax.hpp"

namespace cairn::kernels {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int kBuckets = 2048;
// The weights lie in (0, 1]: bits up to 0x3F800000. Three digits of the bit pattern, most significant first.
constexpr int kShifts[3] = {19, 8, 0};
constexpr std::uint32_t kDigitMask[3] = {0x1FFF, 0x7FF, 0xFF};

std::size_t align64(std::size_t n) {
  return (n + 63) / 64 * 64;
}

struct Scratch {
  float* logits;        // [vocab] edited copy
  float* weights;       // [vocab]
  float* sums;          // [vocab / kSumRun + 1]
  std::int32_t* index;  // [vocab] candidates in rising order
  std::int32_t* tie;    // [vocab] members of the boundary bucket
  std::int32_t* count;  // [kBuckets]
  double* mass;         // [kBuckets]
};

std::size_t area_bytes(std::int64_t vocab) {
  const auto n = static_cast<std::size_t>(vocab);
  return 4 * align64(n * 4) + align64((n / kSumRun + 1) * 4) + align64(kBuckets * 4) + align64(kBuckets * 8);
}

Scratch carve(std::uint8_t* p, std::int64_t vocab) {
  const auto n = static_cast<std::size_t>(vocab);
  const auto take = [&p](std::size_t bytes) {
    std::uint8_t* result = p;
    p += align64(bytes);
    return result;
  };
  Scratch s;
  s.logits = reinterpret_cast<float*>(take(n * 4));
  s.weights = reinterpret_cast<float*>(take(n * 4));
  s.index = reinterpret_cast<std::int32_t*>(take(n * 4));
  s.tie = reinterpret_cast<std::int32_t*>(take(n * 4));
  s.sums = reinterpret_cast<float*>(take((n / kSumRun + 1) * 4));
  s.count = reinterpret_cast<std::int32_t*>(take(kBuckets * 4));
  s.mass = reinterpret_cast<double*>(take(kBuckets * 8));
  return s;
}

bool edits_logits(const SamplingRow& r) {
  const bool repetition = r.repetition_penalty != 1.0F && (r.seen_bits != nullptr || r.seen_count > 0);
  const bool counts = r.counts_count > 0 && (r.presence_penalty != 0.0F || r.frequency_penalty != 0.0F);
  return repetition || counts || r.bias_count > 0 || r.banned_count > 0 || r.allowed_bits != nullptr;
}

void edit(const SamplingRow& r, std::int64_t vocab, float* x) {
  const auto valid = [vocab](std::int32_t t) { return t >= 0 && t < vocab; };
  for (std::int64_t i = 0; i < r.bias_count; ++i) {
    if (valid(r.bias[i].token)) x[r.bias[i].token] += r.bias[i].bias;
  }
  if (r.repetition_penalty != 1.0F) {
    const auto repeat = [&](std::int64_t t) {
      x[t] = x[t] > 0.0F ? x[t] / r.repetition_penalty : x[t] * r.repetition_penalty;
    };
    if (r.seen_bits != nullptr) {
      for (std::int64_t word = 0; word * 64 < vocab; ++word) {
        for (std::uint64_t bits = r.seen_bits[word]; bits != 0; bits &= bits - 1) {
          const std::int64_t t = word * 64 + std::countr_zero(bits);
          if (t < vocab) repeat(t);
        }
      }
    } else {
      for (std::int64_t i = 0; i < r.seen_count; ++i) {
        if (valid(r.seen[i])) repeat(r.seen[i]);
      }
    }
  }
  for (std::int64_t i = 0; i < r.counts_count; ++i) {
    const TokenCount& c = r.counts[i];
    if (!valid(c.token) || c.count <= 0) continue;
    x[c.token] -= r.presence_penalty + r.frequency_penalty * static_cast<float>(c.count);
  }
  for (std::int64_t i = 0; i < r.banned_count; ++i) {
    if (valid(r.banned[i])) x[r.banned[i]] = kLowest;
  }
  if (r.allowed_bits != nullptr) {
    for (std::int64_t word = 0; word * 64 < vocab; ++word) {
      const std::int64_t end = std::min<std::int64_t>(64, vocab - word * 64);
      for (std::uint64_t bits = ~r.allowed_bits[word]; bits != 0; bits &= bits - 1) {
        const int bit = std::countr_zero(bits);
        if (bit >= end) break;
        x[word * 64 + bit] = kLowest;
      }
    }
  }
}

// The token at which the running sum of all weights passes u * total.
std::int32_t draw_from_all(const Scratch& s, std::int64_t vocab, double total, double u) {
  double left = u * total;
  std::int64_t run = 0;
  const std::int64_t runs = (vocab + kSumRun - 1) / kSumRun;
  while (run + 1 < runs && left >= static_cast<double>(s.sums[run])) left -= static_cast<double>(s.sums[run++]);
  std::int32_t last = -1;
  // Rounding may carry the walk past its run or past the end: then the last token with a weight is taken.
  for (std::int64_t i = run * kSumRun; i < vocab; ++i) {
    if (!(s.weights[i] > 0.0F)) continue;
    last = static_cast<std::int32_t>(i);
    left -= static_cast<double>(s.weights[i]);
    if (left < 0.0) return last;
  }
  for (std::int64_t i = run * kSumRun; last < 0 && i-- > 0;) {
    if (s.weights[i] > 0.0F) last = static_cast<std::int32_t>(i);
  }
  return last;
}

// The last token kept in the order (weight falling, index rising): everything before it stays.
struct Cut {
  float weight;
  std::int32_t index;
};

// Keeps tokens while fewer than `k` and less than `limit` of mass come before them, at least one.
Cut find_cut(const Scratch& s, std::int64_t candidates, std::int64_t k, double limit) {
  const std::int32_t* members = s.index;
  std::int64_t member_count = candidates;
  std::int64_t kept = 0;
  double mass = 0.0;
  for (int level = 0; level < 3; ++level) {
    std::fill(s.count, s.count + kBuckets, 0);
    std::fill(s.mass, s.mass + kBuckets, 0.0);
    const auto digit = [&](std::int32_t i) {
      return (std::bit_cast<std::uint32_t>(s.weights[i]) >> kShifts[level]) & kDigitMask[level];
    };
    for (std::int64_t j = 0; j < member_count; ++j) {
      const std::uint32_t b = digit(members[j]);
      ++s.count[b];
      s.mass[b] += static_cast<double>(s.weights[members[j]]);
    }
    // The boundary is in the lowest bucket whose first token is still kept.
    int boundary = -1;
    for (int b = kBuckets - 1; b >= 0; --b) {
      if (s.count[b] == 0) continue;
      if (boundary >= 0) {
        const std::int64_t kept_after = kept + s.count[boundary];
        const double mass_after = mass + s.mass[boundary];
        if (kept_after >= k || mass_after >= limit) break;
        kept = kept_after;
        mass = mass_after;
      }
      boundary = b;
    }
    std::int64_t next = 0;
    for (std::int64_t j = 0; j < member_count; ++j) {
      const std::int32_t i = members[j];
      if (digit(i) == static_cast<std::uint32_t>(boundary)) s.tie[next++] = i;
    }
    members = s.tie;
    member_count = next;
  }
  // All members are equal now, in rising order of index.
  std::int64_t last = 0;
  const auto weight = static_cast<double>(s.weights[members[0]]);
  while (last + 1 < member_count && kept + last + 1 < k && mass + weight * static_cast<double>(last + 1) < limit)
    ++last;
  return {s.weights[members[0]], members[last]};
}

std::int32_t draw_filtered(const SamplingRow& r, const Scratch& s, std::int64_t vocab, double total, double u) {
  float floor = std::numeric_limits<float>::denorm_min();
  if (r.min_p > 0.0F) {
    floor = std::max(floor, std::min(r.min_p, 1.0F));  // the largest weight is 1
  } else if (r.top_p < 1.0F) {
    // All tokens below this together weigh less than the mass that top-p leaves out.
    const double safe = 0.999 * (1.0 - static_cast<double>(r.top_p)) * total / static_cast<double>(vocab);
    floor = std::max(floor, static_cast<float>(std::min(safe, 1.0)));
  }
  std::int64_t candidates = 0;
  for (std::int64_t i = 0; i < vocab; ++i) {
    s.index[candidates] = static_cast<std::int32_t>(i);
    candidates += s.weights[i] >= floor ? 1 : 0;
  }
  Cut cut{0.0F, std::numeric_limits<std::int32_t>::max()};
  const bool limited = (r.top_k > 0 && r.top_k < candidates) || r.top_p < 1.0F;
  if (limited) {
    double mass = total;
    if (r.min_p > 0.0F) {
      mass = 0.0;
      for (std::int64_t j = 0; j < candidates; ++j) mass += static_cast<double>(s.weights[s.index[j]]);
    }
    const double limit = r.top_p < 1.0F ? static_cast<double>(r.top_p) * mass : std::numeric_limits<double>::infinity();
    cut = find_cut(s, candidates, r.top_k > 0 ? r.top_k : candidates, limit);
  }
  const auto kept = [&](std::int32_t i) {
    return s.weights[i] > cut.weight || (s.weights[i] == cut.weight && i <= cut.index);
  };
  std::int64_t count = 0;
  double kept_mass = 0.0;
  for (std::int64_t j = 0; j < candidates; ++j) {
    const std::int32_t i = s.index[j];
    if (!kept(i)) continue;
    s.index[count++] = i;
    kept_mass += static_cast<double>(s.weights[i]);
  }
  double left = u * kept_mass;
  for (std::int64_t j = 0; j < count; ++j) {
    left -= static_cast<double>(s.weights[s.index[j]]);
    if (left < 0.0) return s.index[j];
  }
  return s.index[count - 1];
}

std::int32_t sample_row(const ElementTable& table, const SamplingRow& r, const float* logits, std::int64_t vocab,
                        const Scratch& s) {
  const float* x = logits;
  if (edits_logits(r)) {
    std::memcpy(s.logits, logits, static_cast<std::size_t>(vocab) * sizeof(float));
    edit(r, vocab, s.logits);
    x = s.logits;
  }
  const float max = table.max(x, vocab);
  if (max == kLowest) return -1;
  if (!(r.temperature > 0.0F) || max == -kLowest) return static_cast<std::int32_t>(table.find(x, vocab, max));
  const float factor = std::min(1.0F / r.temperature, std::numeric_limits<float>::max());
  table.exp_runs(x, vocab, max, factor, s.weights, s.sums);
  double total = 0.0;
  for (std::int64_t run = 0; run * kSumRun < vocab; ++run) total += static_cast<double>(s.sums[run]);
  const double u = philox_uniform(r.seed, r.position);
  const bool filtered = r.top_p < 1.0F || r.min_p > 0.0F || (r.top_k > 0 && r.top_k < vocab);
  return filtered ? draw_filtered(r, s, vocab, total, u) : draw_from_all(s, vocab, total, u);
}

}  // namespace

std::size_t sampling_scratch_bytes(std::int64_t vocab, int threads) {
  return 64 + area_bytes(vocab) * static_cast<std::size_t>(std::max(threads, 1));
}

void sample(const float* logits, std::int64_t logits_stride, std::int64_t n, std::int64_t vocab,
            const SamplingRow* rows, std::int32_t* tokens, void* scratch, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  auto* memory = reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(scratch) + 63) / 64 * 64);
  parallel.for_each(static_cast<int>(n), [&](int row, int thread) {
    const Scratch s = carve(memory + static_cast<std::size_t>(thread) * area_bytes(vocab), vocab);
    tokens[row] = sample_row(table, rows[row], logits + row * logits_stride, vocab, s);
  });
}

std::int32_t argmax(const float* x, std::int64_t n) {
  const ElementTable& table = element_table(active_isa());
  const float max = table.max(x, n);
  return max == kLowest ? -1 : static_cast<std::int32_t>(table.find(x, n, max));
}

float token_logprobs(const float* logits, std::int64_t vocab, std::int32_t token, std::int32_t top_n,
                     TokenLogprob* top) {
  const ElementTable& table = element_table(active_isa());
  const double base = softmax_stats(logits, vocab).log_sum_exp;
  const auto logprob = [base](float logit) { return static_cast<float>(static_cast<double>(logit) - base); };
  std::int32_t filled = 0;
  // While scanning, `logprob` of an entry holds the raw logit.
  for (std::int64_t begin = 0; top_n > 0 && begin < vocab; begin += kSumRun) {
    const std::int64_t end = std::min(begin + kSumRun, vocab);
    if (filled == top_n && !(table.max(logits + begin, end - begin) > top[top_n - 1].logprob)) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = std::isnan(logits[i]) ? kLowest : logits[i];
      if (filled == top_n && !(value > top[top_n - 1].logprob)) continue;
      std::int32_t at = filled < top_n ? filled++ : top_n - 1;
      for (; at > 0 && top[at - 1].logprob < value; --at) top[at] = top[at - 1];
      top[at] = {static_cast<std::int32_t>(i), value};
    }
  }
  for (std::int32_t i = 0; i < filled; ++i) top[i].logprob = logprob(top[i].logprob);
  for (std::int32_t i = filled; i < top_n; ++i) top[i] = {-1, 0.0F};
  return token >= 0 && token < vocab ? logprob(logits[token]) : kLowest;
}

}  // namespace cairn::kernels
