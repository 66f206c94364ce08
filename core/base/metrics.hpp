// Counters, gauges and histograms with lock-free updates, and their text exposition for Prometheus (format 0.0.4).
// Used by the front end and the runtimes; the registry outlives everything that was taken from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn {

// Updates from any thread.
class Counter {
 public:
  void add(std::int64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  // For a total that is counted elsewhere and copied here at a scrape.
  void set_total(std::int64_t total) { value_.store(total, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0.0};
};

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // rising upper bounds; +Inf is added
  void observe(double value, std::int64_t times = 1);
  std::int64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  const std::vector<double>& bounds() const { return bounds_; }
  // The number of observations in bucket i alone (not cumulative); i == bounds().size() is +Inf.
  std::int64_t bucket(std::size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::deque<std::atomic<std::int64_t>> buckets_;
  std::atomic<double> sum_{0.0};
};

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Registration takes a lock and may allocate; what it returns is updated without either. Asking again with the same
// name and labels gives the same object.
class MetricsRegistry {
 public:
  Counter& counter(std::string_view name, std::string_view help, const MetricLabels& labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, const MetricLabels& labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                       const MetricLabels& labels = {});
  // Counters, then gauges, then histograms, each sorted by name and labels.
  std::string expose() const;

 private:
  template <class T>
  struct Family {
    std::string help;
    std::map<std::string, T> series;  // by the label text, `a="b",c="d"`
  };
  template <class T>
  using Families = std::map<std::string, Family<T>, std::less<>>;

  mutable std::mutex mutex_;
  Families<Counter> counters_;
  Families<Gauge> gauges_;
  Families<Histogram> histograms_;
};

}  // namespace cairn
