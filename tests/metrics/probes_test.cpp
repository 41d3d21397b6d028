// Tests what the probes report at a scrape.
#include "metrics/client_probe.hpp"
#include "metrics/disk_probe.hpp"
#include "metrics/request_probe.hpp"
#include "metrics/space_table.hpp"
#include "metrics/tier_probe.hpp"
#include "metrics/worker_probe.hpp"

#include <gtest/gtest.h>

#include <map>

namespace terrace::metrics {
namespace {

using namespace std::chrono_literals;

/// Keeps samples by "name{label=value,...}".
class recorder final : public sample_sink {
 public:
  void counter(std::string_view name, std::string_view, const labels& of, double value) override {
    add(name, of, value);
  }
  void gauge(std::string_view name, std::string_view, const labels& of, double value) override {
    add(name, of, value);
  }
  void histogram(std::string_view name, std::string_view, const labels& of,
                 const latency_histogram::snapshot& value) override {
    add(name, of, static_cast<double>(value.count()));
  }

  double operator[](const std::string& sample) const {
    auto found = samples.find(sample);
    return found == samples.end() ? -1 : found->second;
  }

  std::map<std::string, double> samples;

 private:
  void add(std::string_view name, const labels& of, double value) {
    std::string key(name);
    for (const auto& [label, text] : of)
      key += (&label == &of.front().first ? "{" : ",") + label + "=" + text;
    EXPECT_TRUE(samples.emplace(of.empty() ? key : key + "}", value).second) << key << " was said twice";
  }
};

TEST(MissTable, CountsByClientAndLeavesOutReasonsWithoutTokens) {
  miss_table misses;
  misses.missed("default", "vllm scheduler", miss_reason::evicted, 100);
  misses.missed("default", "vllm scheduler", miss_reason::evicted, 1);
  misses.missed("other group", "caf\xc3\xa9", miss_reason::not_stored, 7);
  recorder now;
  misses.collect(now);
  EXPECT_EQ(now.samples.size(), 2u);
  EXPECT_EQ(now["terrace_client_miss_tokens_total{group=default,client=vllm scheduler,reason=evicted}"], 101);
  EXPECT_EQ(now["terrace_client_miss_tokens_total{group=other group,client=caf\xc3\xa9,reason=not_stored}"],
            7);
}

TEST(MissTable, ClientsCannotMakeSeriesWithoutLimit) {
  miss_table misses;
  for (size_t i = 0; i < 3 * miss_table::named_max; ++i)
    misses.missed("default", "client " + std::to_string(i), miss_reason::evicted, 1);
  misses.missed("default", "client 0", miss_reason::evicted, 1);
  recorder now;
  misses.collect(now);
  EXPECT_EQ(now.samples.size(), miss_table::named_max + 1);
  EXPECT_EQ(now["terrace_client_miss_tokens_total{group=default,client=client 0,reason=evicted}"], 2);
  EXPECT_EQ(now["terrace_client_miss_tokens_total{group=default,client=other,reason=evicted}"],
            2 * miss_table::named_max);
}

TEST(RequestProbe, CountsOutcomesByVerb) {
  constexpr std::string_view names[] = {"", "hello", "lookup"};
  request_probe probe;
  probe.started(2);
  probe.started(2);
  probe.finished(2, errc::no_space, 30us);
  recorder now;
  probe.collect(names, {}, now);
  EXPECT_EQ(now["terrace_requests_total{verb=lookup,code=no_space}"], 1);
  EXPECT_EQ(now["terrace_requests_total{verb=hello,code=no_space}"], 0);
  EXPECT_EQ(now["terrace_requests_in_flight{verb=lookup}"], 1);
  EXPECT_EQ(now["terrace_request_duration_seconds{verb=lookup}"], 1);
}

TEST(RequestProbe, IgnoresKindsThatNobodyServes) {
  request_probe probe;
  probe.started(0x7fff);
  probe.finished(0x7fff, errc::bad_request, 1us);
  probe.finished(3, static_cast<errc>(200), 1us);
}

TEST(TierProbe, ReckonsFragmentationFromWhatTheSmallestObjectCanUse) {
  tier_probe probe;
  probe.occupies({.capacity_bytes = 100,
                  .used_bytes = 60,
                  .requested_bytes = 55,
                  .largest_free_run = 12,
                  .free_runs = 5,
                  .whole_bytes = 10});
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_tier_free_bytes"], 40);
  EXPECT_EQ(now["terrace_tier_largest_free_run_bytes"], 12);
  EXPECT_EQ(now["terrace_tier_free_runs"], 5);
  EXPECT_DOUBLE_EQ(now["terrace_tier_fragmentation_ratio"], 0.75);
}

TEST(TierProbe, NeverReportsALevelBelowZero) {
  tier_probe probe;
  probe.occupies({.capacity_bytes = 10, .used_bytes = 60, .requested_bytes = 55, .largest_free_run = 100});
  recorder now;
  probe.collect({}, now);
  for (const auto& [name, value] : now.samples)
    EXPECT_GE(value, 0) << name;
}

TEST(TierProbe, TellsEvictionsApartByReason) {
  tier_probe probe;
  probe.evicted(eviction_reason::space, 3, 300);
  probe.evicted(eviction_reason::damaged, 1, 100);
  probe.found_no_victim();
  recorder now;
  probe.collect({{"tier", "host"}}, now);
  EXPECT_EQ(now["terrace_tier_evictions_total{tier=host,reason=space}"], 3);
  EXPECT_EQ(now["terrace_tier_evicted_bytes_total{tier=host,reason=damaged}"], 100);
  EXPECT_EQ(now["terrace_tier_evictions_without_victim_total{tier=host}"], 1);
}

TEST(TierProbe, TellsRefusalsApartFromDrops) {
  tier_probe probe;
  probe.refused(refusal_reason::endurance, 3);
  probe.refused(refusal_reason::degraded, 2);
  probe.dropped(1);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_tier_refused_total{reason=endurance}"], 3);
  EXPECT_EQ(now["terrace_tier_refused_total{reason=degraded}"], 2);
  EXPECT_EQ(now["terrace_tier_refused_total{reason=admission}"], 0);
  EXPECT_EQ(now["terrace_tier_dropped_total"], 1);
}

TEST(TierProbe, TimesReuseAndEviction) {
  tier_probe probe;
  probe.reused(2s);
  probe.reused(3h);
  probe.unused_until_evicted(2min);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_tier_reuse_interval_seconds"], 2);
  EXPECT_EQ(now["terrace_tier_eviction_age_seconds"], 1);
}

TEST(DiskProbe, SaysThatItsPathIsMissing) {
  disk_probe probe;
  recorder before, after;
  probe.collect({{"path", "/a"}}, before);
  EXPECT_EQ(before["terrace_disk_missing{path=/a}"], 0);
  probe.missing();
  probe.collect({{"path", "/a"}}, after);
  EXPECT_EQ(after["terrace_disk_missing{path=/a}"], 1);
}

TEST(DiskProbe, CountsDamageByKind) {
  disk_probe probe;
  probe.damaged(disk_damage::object, 3);
  probe.damaged(disk_damage::truncated);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_disk_damage_total{kind=object}"], 3);
  EXPECT_EQ(now["terrace_disk_damage_total{kind=truncated}"], 1);
  EXPECT_EQ(now["terrace_disk_damage_total{kind=superblock}"], 0);
}

TEST(DiskProbe, KnowsWhatTheKernelHasNotCompleted) {
  disk_probe probe;
  probe.started(disk_operation::write);
  probe.started(disk_operation::read);
  probe.finished(disk_operation::read, 0, true, {});
  probe.stalled(disk_operation::write); // the same operation as before
  EXPECT_EQ(probe.in_kernel(), 1u);
}

TEST(DiskProbe, CountsDegradationsByDirection) {
  disk_probe probe;
  probe.degraded(disk_operation::write);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_disk_degradations_total{operation=write}"], 1);
  EXPECT_EQ(now["terrace_disk_degradations_total{operation=read}"], 0);
}

TEST(DiskProbe, CountsStallsAndThoseThatLast) {
  disk_probe probe;
  probe.stalled(disk_operation::read);
  probe.stalled(disk_operation::read);
  probe.unstalled(disk_operation::read);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_disk_stalls_total{operation=read}"], 2);
  EXPECT_EQ(now["terrace_disk_stalled{operation=read}"], 1);
  EXPECT_EQ(now["terrace_disk_stalled{operation=write}"], 0);
}

TEST(DiskProbe, CountsFailuresApartFromBytes) {
  disk_probe probe;
  probe.started(disk_operation::read);
  probe.started(disk_operation::read);
  probe.finished(disk_operation::read, 4096, false, 90us);
  probe.finished(disk_operation::read, 0, true, 90us);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_disk_errors_total{operation=read}"], 1);
  EXPECT_EQ(now["terrace_disk_transferred_bytes_total{operation=read}"], 4096);
  EXPECT_EQ(now["terrace_disk_in_flight{operation=read}"], 0);
}

TEST(DiskProbe, TellsTheLinesInFrontOfTheDeviceApart) {
  disk_probe probe;
  probe.line(0, 3, 8192);
  probe.line(2, 7, 4096);
  probe.waited(2, 5ms);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_disk_queued{line=load}"], 3);
  EXPECT_EQ(now["terrace_disk_in_flight_bytes{line=load}"], 8192);
  EXPECT_EQ(now["terrace_disk_wait_duration_seconds{line=load}"], 0);
  EXPECT_EQ(now["terrace_disk_queued{line=write}"], 7);
  EXPECT_EQ(now["terrace_disk_wait_duration_seconds{line=write}"], 1);
  EXPECT_EQ(now["terrace_disk_queued{line=scrub}"], -1); // nothing uses it
}

TEST(ClientProbe, KeepsLevelsAndTotalsApart) {
  client_probe probe;
  probe.connected();
  probe.connected();
  probe.disconnected();
  probe.refused(refusal::credentials);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_connections"], 1);
  EXPECT_EQ(now["terrace_connections_accepted_total"], 2);
  EXPECT_EQ(now["terrace_refused_total{reason=credentials}"], 1);
}

TEST(WorkerProbe, WakingEndsSleep) {
  worker_probe probe;
  probe.sleeps();
  probe.woke();
  probe.busy(1500ms);
  recorder now;
  probe.collect({}, now);
  EXPECT_EQ(now["terrace_worker_sleeping"], 0);
  EXPECT_DOUBLE_EQ(now["terrace_worker_busy_seconds_total"], 1.5);
}

TEST(SpaceTable, GivesTheFirstSpacesNamesAndPoolsTheRest) {
  space_table table(2);
  table.probe("default", "a")->asked(1);
  table.probe("default", "b")->asked(2);
  table.probe("default", "c")->asked(4);
  table.probe("default", "d")->asked(8);
  table.probe("default", "a")->asked(16);
  recorder now;
  table.collect(now);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=a}"], 17);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=other}"], 12);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=c}"], -1);
}

TEST(SpaceTable, KeepsGroupsApartAlsoInTheRest) {
  space_table table(0);
  table.probe("one", "a")->asked(1);
  table.probe("two", "a")->asked(2);
  recorder now;
  table.collect(now);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=one,space=other}"], 1);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=two,space=other}"], 2);
}

TEST(SpaceTable, MakesNamesOfClientsSafeForLabels) {
  space_table table(8);
  table.probe("default", "mo\xff\ndel")->asked(1);
  table.probe("default", "mo??del")->asked(2);
  table.probe("default", "\u901a\u4e49\u5343\u95ee")->asked(3);
  table.probe("default", "\u6df1\u5ea6\u6c42\u7d22")->asked(4);
  std::string wide;
  for (int i = 0; i < 1000; ++i)
    wide += "\u6df1";
  table.probe("default", wide)->asked(5);
  table.probe("default", std::string(5000, 'x'))->asked(1);
  recorder now;
  table.collect(now);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=mo\\xff\\x0adel}"], 1);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=mo??del}"], 2);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=\u901a\u4e49\u5343\u95ee}"], 3);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=\u6df1\u5ea6\u6c42\u7d22}"], 4);
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=" + wide.substr(0, 99) + "}"], 5)
      << "no part of a character is left";
  EXPECT_EQ(now["terrace_space_asked_tokens_total{group=default,space=" + std::string(100, 'x') + "}"], 1);
}

TEST(SpaceTable, ASpaceCalledOtherIsAmongTheOthers) {
  space_table table(1);
  table.probe("default", "other");
  EXPECT_NE(table.probe("default", "a"), table.probe("default", "b"))
      << "'other' must not have used up the one name";
}

TEST(ShadowProbe, HasALineForEachPolicyAndCapacity) {
  shadow_probe probe;
  probe.add_line("lru", 4096);
  probe.add_line("lru", 8192);
  probe.set(1, {.asked = 10, .hits = 7, .evicted = 3, .used_bytes = 8000, .bookkeeping_bytes = 96});
  probe.skipped(2);
  recorder now;
  probe.collect({{"group", "default"}}, now);
  EXPECT_EQ(now["terrace_shadow_asked_total{group=default,policy=lru,capacity_bytes=4096}"], 0);
  EXPECT_EQ(now["terrace_shadow_asked_total{group=default,policy=lru,capacity_bytes=8192}"], 10);
  EXPECT_EQ(now["terrace_shadow_hits_total{group=default,policy=lru,capacity_bytes=8192}"], 7);
  EXPECT_EQ(now["terrace_shadow_evictions_total{group=default,policy=lru,capacity_bytes=8192}"], 3);
  EXPECT_EQ(now["terrace_shadow_used_bytes{group=default,policy=lru,capacity_bytes=8192}"], 8000);
  EXPECT_EQ(now["terrace_shadow_bookkeeping_bytes{group=default,policy=lru,capacity_bytes=8192}"], 96);
  EXPECT_EQ(now["terrace_shadow_skipped_total{group=default}"], 2);
}

} // namespace
} // namespace terrace::metrics
