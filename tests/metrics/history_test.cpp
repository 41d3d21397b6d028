// What is kept of the last hour.
#include "metrics/exposition.hpp"

#include <gtest/gtest.h>

namespace terrace::metrics {
namespace {

void add(history& to, int64_t time_ms, double used) {
  to.add(time_ms, [used](sample_sink& sink) {
    for (std::string group : {"default", "tenant"}) {
      labels host = {{"group", group}, {"tier", "host"}};
      sink.gauge("terrace_tier_used_bytes", "", host, used);
      sink.gauge("terrace_tier_capacity_bytes", "", host, 100);
      sink.counter("terrace_space_hit_tokens_total", "", {{"group", group}, {"space", "m"}, {"tier", "host"}},
                   7);
      sink.counter("terrace_space_asked_tokens_total", "", {{"group", group}, {"space", "m"}}, 10);
    }
    sink.gauge("terrace_tier_used_bytes", "", {{"group", "default"}, {"tier", "of another version"}}, 1);
    sink.gauge("terrace_something_else", "", {{"tier", "host"}}, 1000);
    sink.histogram("terrace_tier_used_bytes", "", {{"tier", "host"}}, {});
  });
}

TEST(History, HasSumsOfAllGroupsForTheTiersThatAreThere) {
  history kept;
  EXPECT_EQ(kept.text(), R"({"points":[]})");
  add(kept, 1'700'000'000'000, 30);
  EXPECT_EQ(
      kept.text(),
      R"({"points":[{"asked":20.0,"tiers":{"host":{"capacity":200.0,"hit":14.0,"used":60.0}},"time_ms":1700000000000}]})");
}

TEST(History, KeepsAnHourAndForgetsWhatIsOlder) {
  history kept;
  for (int64_t i = 0; i < 2 * static_cast<int64_t>(history::points_max); ++i)
    add(kept, i, 1);
  std::string text = kept.text();
  size_t points = 0;
  for (size_t at = 0; (at = text.find("time_ms", at)) != std::string::npos; ++at)
    ++points;
  EXPECT_EQ(points, history::points_max);
  EXPECT_EQ(text.find("\"time_ms\":" + std::to_string(history::points_max - 1) + "}"), std::string::npos);
  EXPECT_NE(text.find("\"time_ms\":" + std::to_string(2 * history::points_max - 1) + "}"), std::string::npos);
}

} // namespace
} // namespace terrace::metrics
