#include "actors/supervision/metrics_actor.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

using namespace terrace;

namespace {

struct gauges final : metrics::sample_sink {
  void counter(std::string_view, std::string_view, const metrics::labels&, double) override {}
  void gauge(std::string_view name, std::string_view, const metrics::labels& labels, double value) override {
    of[std::string(name)] = value;
    group = labels.front().second;
  }
  void histogram(std::string_view, std::string_view, const metrics::labels&,
                 const metrics::histogram_snapshot&) override {}
  std::map<std::string, double> of;
  std::string group;
};

} // namespace

TEST(MemoryGauges, ShowWhatIsThereAndWhatLeaves) {
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create({.name = "test", .bytes = 3 << 20, .segment_bytes = 1 << 20}).value();
  auto source = memory_gauges(memory, {{"group", "default"}});
  gauges sink;
  source(sink);
  EXPECT_EQ(sink.group, "default");
  EXPECT_EQ(sink.of["terrace_arena_bytes"], 3 << 20);
  EXPECT_EQ(sink.of["terrace_arena_leaving_bytes"], 0);
  memory->retire(2);
  source(sink);
  EXPECT_EQ(sink.of["terrace_arena_bytes"], 2 << 20);
  EXPECT_EQ(sink.of["terrace_arena_leaving_bytes"], 1 << 20);
}
