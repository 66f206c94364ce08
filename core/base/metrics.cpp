#include "core/base/metrics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace cairn {
namespace {

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string label_text(const MetricLabels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += ',';
    text += name;
    text += "=\"";
    append_escaped(text, value, true);
    text += '"';
  }
  return text;
}

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    std::array<char, 40> digits{};
    out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  }
}

void append_header(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  out.append("# HELP ").append(name).append(" ");
  append_escaped(out, help, false);
  out.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void append_sample(std::string& out, std::string_view name, std::string_view suffix, std::string_view labels,
                   double value) {
  out.append(name).append(suffix);
  if (!labels.empty()) out.append("{").append(labels).append("}");
  out += ' ';
  append_number(out, value);
  out += '\n';
}

void append_histogram(std::string& out, std::string_view name, const std::string& labels, const Histogram& histogram) {
  const std::string prefix = labels.empty() ? "" : labels + ",";
  std::int64_t below = 0;
  for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
    below += histogram.bucket(i);
    std::string with_bound = prefix + "le=\"";
    if (i < histogram.bounds().size()) {
      append_number(with_bound, histogram.bounds()[i]);
    } else {
      with_bound += "+Inf";
    }
    append_sample(out, name, "_bucket", with_bound + "\"", static_cast<double>(below));
  }
  append_sample(out, name, "_sum", labels, histogram.sum());
  append_sample(out, name, "_count", labels, static_cast<double>(below));  // equal to +Inf even while others observe
}

template <class Families, class... Args>
auto& find_or_add(Families& families, std::string_view name, std::string_view help, const MetricLabels& labels,
                  Args&&... args) {
  auto family = families.find(name);
  if (family == families.end()) {
    family = families.try_emplace(std::string(name)).first;
    family->second.help = help;
  }
  return family->second.series.try_emplace(label_text(labels), std::forward<Args>(args)...).first->second;
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), buckets_(bounds_.size() + 1) {}

void Histogram::observe(double value, std::int64_t times) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[static_cast<std::size_t>(bucket)].fetch_add(times, std::memory_order_relaxed);
  sum_.fetch_add(value * static_cast<double>(times), std::memory_order_relaxed);
}

std::int64_t Histogram::count() const {
  std::int64_t total = 0;
  for (const auto& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
  return total;
}

Counter& MetricsRegistry::counter(std::string_view name, std::string_view help, const MetricLabels& labels) {
  const std::lock_guard lock(mutex_);
  return find_or_add(counters_, name, help, labels);
}

Gauge& MetricsRegistry::gauge(std::string_view name, std::string_view help, const MetricLabels& labels) {
  const std::lock_guard lock(mutex_);
  return find_or_add(gauges_, name, help, labels);
}

Histogram& MetricsRegistry::histogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                                      const MetricLabels& labels) {
  const std::lock_guard lock(mutex_);
  return find_or_add(histograms_, name, help, labels, bounds);
}

std::string MetricsRegistry::expose() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : counters_) {
    append_header(out, name, family.help, "counter");
    for (const auto& [labels, counter] : family.series) {
      append_sample(out, name, "", labels, static_cast<double>(counter.value()));
    }
  }
  for (const auto& [name, family] : gauges_) {
    append_header(out, name, family.help, "gauge");
    for (const auto& [labels, gauge] : family.series) append_sample(out, name, "", labels, gauge.value());
  }
  for (const auto& [name, family] : histograms_) {
    append_header(out, name, family.help, "histogram");
    for (const auto& [labels, histogram] : family.series) append_histogram(out, name, labels, histogram);
  }
  return out;
}

}  // namespace cairn
