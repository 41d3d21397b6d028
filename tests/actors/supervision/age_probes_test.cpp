#include "actors/supervision/group_probes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

using namespace terrace;
using namespace std::chrono_literals;

namespace {

/// Counts of histograms by name.
struct counts final : metrics::sample_sink {
  void counter(std::string_view, std::string_view, const metrics::labels&, double) override {}
  void gauge(std::string_view, std::string_view, const metrics::labels&, double) override {}
  void histogram(std::string_view name, std::string_view, const metrics::labels&,
                 const metrics::histogram_snapshot& value) override {
    of[std::string(name)] += value.count();
  }
  std::map<std::string, uint64_t> of;
};

} // namespace

TEST(AgeProbes, EachTierCountsItsOwn) {
  auto probe = std::make_shared<metrics::tier_probe>();
  age_probes ages;
  ages.set(1, probe);
  ages.reused(1, 5ms, 1);
  ages.reused(1, 7ms, 1);
  ages.evicted(1, {}, 9ms);
  ages.reused(2, 5ms, 3); // is not counted
  counts sink;
  probe->collect({}, sink);
  uint64_t all = 0;
  for (const auto& [name, count] : sink.of)
    all += count;
  EXPECT_EQ(all, 3u);
}
