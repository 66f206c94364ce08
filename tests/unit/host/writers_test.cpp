// The two text formats the host writes itself: JSON and Prometheus exposition.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/base/metrics.hpp"
#include "host/openai/json_writer.hpp"

namespace cairn {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWriter, EscapesAndReplacesAtTheBoundary) {
  EXPECT_EQ(quoted("a\"b\\c\n\r\t\b\f\x01/"), R"("a\"b\\c\n\r\t\b\f\u0001/")");
  EXPECT_EQ(quoted("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(quoted("a\xC3"), "\"a" + r + "\"");                        // cut
  EXPECT_EQ(quoted("\xE2\x82 x"), "\"" + r + " x\"");                  // one per maximal sequence
  EXPECT_EQ(quoted("\xFF\xFE"), "\"" + r + r + "\"");                  // never a lead byte
  EXPECT_EQ(quoted("\xC0\xAF"), "\"" + r + r + "\"");                  // over-long
  EXPECT_EQ(quoted("\xED\xA0\x80"), "\"" + r + r + r + "\"");          // surrogate
  EXPECT_EQ(quoted("\xF4\x90\x80\x80"), "\"" + r + r + r + r + "\"");  // over U+10FFFF
  EXPECT_EQ(quoted(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(JsonWriter, PlacesCommasAndNulls) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("a", std::int64_t{-5}).key("b").begin_array().end_array().key("c").begin_array();
  json.number(0.1F)
      .number(0.1)
      .number(std::nan(""))
      .number(std::numeric_limits<double>::infinity())
      .boolean(true)
      .null();
  json.end_array().field("d", "x").end_object();
  EXPECT_EQ(out, R"({"a":-5,"b":[],"c":[0.1,0.1,null,null,true,null],"d":"x"})");
}

TEST(Metrics, ExposeTheTextFormat) {
  MetricsRegistry registry;
  registry.counter("c_total", "Counts \\ things\nhere.", {{"k", "a\"b\\c\nd"}}).add(3);
  registry.counter("c_total", "unused", {{"k", "a\"b\\c\nd"}}).add(2);
  registry.gauge("g", "A gauge.").set(1.5);
  auto& histogram = registry.histogram("h_seconds", "Times.", {1, 2.5}, {{"m", "x"}});
  for (const double value : {0.5, 1.0, 2.0, 9.0}) histogram.observe(value);
  EXPECT_EQ(registry.expose(),
            "# HELP c_total Counts \\\\ things\\nhere.\n# TYPE c_total counter\n"
            "c_total{k=\"a\\\"b\\\\c\\nd\"} 5\n"
            "# HELP g A gauge.\n# TYPE g gauge\ng 1.5\n"
            "# HELP h_seconds Times.\n# TYPE h_seconds histogram\n"
            "h_seconds_bucket{m=\"x\",le=\"1\"} 2\nh_seconds_bucket{m=\"x\",le=\"2.5\"} 3\n"
            "h_seconds_bucket{m=\"x\",le=\"+Inf\"} 4\nh_seconds_sum{m=\"x\"} 12.5\nh_seconds_count{m=\"x\"} 4\n");
}

TEST(Metrics, LoseNothingBetweenThreads) {
  MetricsRegistry registry;
  auto& counter = registry.counter("c_total", "c");
  auto& histogram = registry.histogram("h", "h", {1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10000; ++k) {
        counter.add();
        histogram.observe(0.5);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 40000);
  EXPECT_EQ(histogram.count(), 40000);
  EXPECT_EQ(histogram.sum(), 20000.0);
}

}  // namespace
}  // namespace cairn
