// The metrics of a daemon under load, compared with docs/metrics.md.
#include "gpu_daemon.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace terrace::e2e {
namespace {

struct family {
  std::string kind;
  std::set<std::string> labels;
  friend bool operator==(const family&, const family&) = default;
};
std::ostream& operator<<(std::ostream& to, const family& of) {
  to << of.kind;
  for (const std::string& label : of.labels)
    to << " " << label;
  return to;
}
using families = std::map<std::string, family>;

/// Returns the rows of the page's tables.
families documented() {
  std::ifstream page(TERRACE_SOURCE_ROOT "/docs/metrics.md");
  std::regex row(R"(\| `((?:terrace|process)_\w+)` \| (\w+) \| ([^|]*)\|.*)");
  families all;
  for (std::string line; std::getline(page, line);) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row))
      continue;
    family& of = all[cells[1]];
    of.kind = cells[2];
    std::istringstream labels(std::regex_replace(cells[3].str(), std::regex(","), " "));
    for (std::string label; labels >> label;)
      of.labels.insert(label);
  }
  return all;
}

struct exposed {
  families kinds;
  std::map<std::string, double> samples; ///< by "name{label="value",...}"; for a histogram, its `_count`

  double sum_of(const std::string& beginning) const {
    double sum = 0;
    for (const auto& [name, value] : samples)
      if (name.starts_with(beginning))
        sum += value;
    return sum;
  }
};

exposed parse(const std::string& text) {
  exposed all;
  std::istringstream lines(text);
  std::regex type(R"(# TYPE (\w+) (\w+))"), sample(R"((\w+)(\{(.*)\})? (\S+))"), label(R"((\w+)=")");
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, type)) {
      all.kinds[parts[1]].kind = parts[2];
    } else if (std::regex_match(line, parts, sample)) {
      std::string name = parts[1], labels = parts[3];
      if (name.ends_with("_bucket") || (name.ends_with("_sum") && !all.kinds.contains(name)))
        continue;
      all.samples[name + "{" + labels + "}"] = std::stod(parts[4]);
      if (name.ends_with("_count") && !all.kinds.contains(name))
        name = name.substr(0, name.size() - 6);
      for (std::sregex_iterator one(labels.begin(), labels.end(), label), end; one != end; ++one)
        all.kinds[name].labels.insert((*one)[1]);
    }
  }
  return all;
}

struct MetricsOfADaemon : ::testing::Test {
  explicit MetricsOfADaemon(uint64_t disk_bytes = 32 * mebibyte, const std::string& disk = {})
      : daemon({.daemon = "busy_poll = 100\n",
                .host_bytes = 16 * mebibyte,
                .disk_bytes = disk_bytes,
                .disk = disk_bytes == 0 ? "" : "admission = \"always\"\n" + disk,
                .metrics = "127.0.0.1:" + std::to_string(port),
                .more = "[shadow]\npolicies = [\"lru\"]\ncapacity_percents = [100]\n"
                        "[[quota]]\nname = \"some\"\ntenant = \"salt\"\nhost_max = \"50%\"\n"}) {}
  exposed now() const { return parse(test::scrape(port)); }

  uint16_t port = test::free_port();
  daemon_under_test daemon;
};

/// Makes a first load of a whole large page into memory that its client never wrote.
void load_into_new_memory(tester& client) {
  auto spec = test_space();
  spec.model = "large";
  spec.pools = {{.name = "kv", .object_bytes = 2 * mebibyte}};
  auto space = client->open_space(spec, patiently());
  auto written = client::region::create("written", 2 * mebibyte),
       fresh = client::region::create("new", 2 * mebibyte);
  ASSERT_TRUE(space && written && fresh);
  auto from = client->register_region(*written, patiently()),
       to = client->register_region(*fresh, patiently());
  ASSERT_TRUE(from && to);
  auto chain = chain_of(99, 1);
  const client::run all{.offset = 0, .bytes = 2 * mebibyte};
  client::store_request store;
  store.in = *space;
  store.what = client::prefix::of_digests(chain);
  store.region = &*from;
  store.runs = {&all, 1};
  ASSERT_TRUE(client->store(store, patiently()));
  client::load_request load;
  load.in = *space;
  load.what = client::prefix::of_digests(chain);
  load.region = &*to;
  load.runs = {&all, 1};
  ASSERT_TRUE(client->load(load, patiently()));
}

/// Stores and loads far beyond both tiers, under leases and without, and makes some requests that fail.
void put_under_load(daemon_under_test& daemon) {
  tester client(daemon.socket(), "load");
  std::vector<std::vector<digest>> chains;
  for (uint64_t i = 0; i < 12; ++i) {
    chains.push_back(chain_of(i, 6));
    client.store(chains.back());
    client.load_and_check(chains[i / 2]);
    client.lookup(chains[i], true);
    client.lookup(chains[i / 3]);
    if (i >= 4) { // loads the oldest of the disk's five chains
      ASSERT_TRUE(client->prefetch({.in = client.space(),
                                    .what = client::prefix::of_digests(chains[i - 4]),
                                    .rule = client::stop_rule::wait},
                                   patiently()));
    }
  }
  auto session = client->open_session(client.space(), {}, patiently());
  ASSERT_TRUE(session);
  std::vector<uint32_t> known(4 * test_space().chunk_tokens, 3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        client->lookup({.in = client.space(), .what = client::prefix::of_tokens(known)}, patiently()));
  }
  std::vector<uint32_t> prompt(20, 5);
  ASSERT_TRUE(session->lookup(prompt, 0, {}, patiently()));
  auto nothing = client.lookup_of(chains[0]);
  nothing.options.no_load = true;
  ASSERT_TRUE(client->lookup(nothing, patiently()));
  auto kept_out = client.store_of(chains[0]);
  kept_out.options.no_store = true;
  ASSERT_TRUE(client->store(kept_out, patiently()));
  client.lookup(chain_of(98, 1), true); // which nobody has stored
  auto leased = client.lookup(chains.back(), true);
  ASSERT_TRUE(client->admin().revoke(leased.held.id(), patiently()));
  ASSERT_TRUE(client->admin().clear({}, patiently()));
  client.store(chains[0]);
  load_into_new_memory(client);
  ASSERT_TRUE(client->admin().check(patiently()));
}

/// Counters that stay 0 unless something fails, is exhausted or crowded; other tests raise them.
const std::set<std::string> raised_by_trouble = {
    "terrace_check_differences_total",
    "terrace_connection_rings_total",
    "terrace_connection_awaited_counters",
    "terrace_connection_stalls_total",
    "terrace_copier_failures_total",
    "terrace_disk_contended_operations_total",
    "terrace_disk_damage_total",
    "terrace_disk_degradations_total",
    "terrace_disk_errors_total",
    "terrace_disk_stalls_total",
    "terrace_journal_errors_total",
    "terrace_journal_lost_total",
    "terrace_leases_shortened_total",
    "terrace_prompts_evicted_total",
    "terrace_device_failures_total",
    "terrace_device_generations_total",
    "terrace_device_peer_bytes_total", // needs a second GPU
    "terrace_device_disk_bytes_total", // needs a GPU that reads disks: gpu_direct_disk_test.cpp
    "terrace_device_disk_failures_total",
    "terrace_device_disk_late_total",
    "terrace_late_reads_total",              // remote_slow_link_test.cpp
    "terrace_computing_saved_seconds_total", // recompute_test.cpp
    "terrace_computing_saved_load_seconds_total",
    "terrace_recompute_requests_total",
    "terrace_recompute_tokens_total",
    "terrace_refused_total",
    "terrace_sessions_demoted_total",
    "terrace_sessions_evicted_total",
    "terrace_sessions_unheld_total",
    "terrace_shadow_skipped_total",
    "terrace_tier_demotions_failed_total",
    "terrace_tenant_refused_total",
    "terrace_tier_dropped_total",
    "terrace_tier_evictions_without_victim_total",
    "terrace_tier_over_evicted_bytes_total",
    "terrace_tier_prefetch_refused_total",
    "terrace_tier_refused_total",
    "terrace_worker_pushed_jobs_total",
};

/// Metrics of sessions and prompts with a partial chunk: session_tail_test.cpp and prompt_entry_test.cpp.
const std::set<std::string> raised_by_partial_chunks = {"terrace_prompt_lookups_total",
                                                        "terrace_tails_removed_total"};

/// Metrics of subscribers.
const std::set<std::string> raised_by_subscribers = {"terrace_events_told_total",
                                                     "terrace_subscribers_lost_total"};

/// Metrics of Redis clients.
const std::set<std::string> raised_by_redis_clients = {
    "terrace_resp_commands_total",        "terrace_resp_errors_total",     "terrace_resp_hits_total",
    "terrace_resp_misses_total",          "terrace_resp_read_bytes_total", "terrace_resp_stored_bytes_total",
    "terrace_resp_wrong_passwords_total",
};

/// Metrics that need another `disk.demotion` than the default.
const std::set<std::string> raised_by_demotion = {
    "terrace_tier_demoted_bytes_total",
    "terrace_tier_demoted_total",
    "terrace_tier_demotion_wait_seconds",
};

TEST_F(MetricsOfADaemon, AreThoseOfThePageAndEachHasAProducer) {
  ASSERT_TRUE(daemon.await_log("joined"));
  tester engine(daemon.socket(), "engine");
  engine_memory memory(device_kind::host, region_objects * object_bytes);
  auto region = engine->register_device_region(memory.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  ASSERT_TRUE(eventually([&] { return device_of(engine).pinned_bytes != 0; }));
  auto chain = chain_of(777, 2);
  ASSERT_TRUE(store_from(engine, *region, chain, interleaved(2)));
  ASSERT_TRUE(load_into(engine, *region, chain, interleaved(2)));
  auto written = client::region::create("written", object_bytes); // mapped by a pass and not copied
  ASSERT_TRUE(written);
  std::memset(written->data(), 1, written->size());
  auto mapped_ahead = engine->register_region(*written, patiently());
  ASSERT_TRUE(mapped_ahead);
  put_under_load(daemon);
  families page = documented();
  exposed seen;
  std::set<std::string> never_raised;
  eventually([&] { // some are counted after the answers
    for (int i = 0; i < 10; ++i)
      engine.status(); // on a busy machine few requests come while a worker polls
    seen = now();
    never_raised.clear();
    for (const auto& [name, of] : seen.kinds)
      if (of.kind != "gauge" && name.starts_with("terrace_") && !raised_by_trouble.contains(name) &&
          !raised_by_demotion.contains(name) && !raised_by_redis_clients.contains(name) &&
          !raised_by_subscribers.contains(name) && !raised_by_partial_chunks.contains(name) &&
          seen.sum_of(name + (of.kind == "histogram" ? "_count{" : "{")) == 0)
        never_raised.insert(name);
    return never_raised.empty();
  });
  EXPECT_EQ(never_raised, std::set<std::string>());
  for (const auto& [name, of] : page)
    EXPECT_TRUE(name.starts_with("terrace_remote_") ||    // shared_cache_test.cpp
                raised_by_redis_clients.contains(name) || // resp_test.cpp
                seen.kinds.contains(name))
        << name << " is on the page, but the daemon does not serve it";
  for (const std::string& name : raised_by_redis_clients)
    EXPECT_FALSE(seen.kinds.contains(name)) << name << " is served without a socket for Redis clients";
  for (const auto& [name, of] : seen.kinds) {
    EXPECT_TRUE(page.contains(name)) << name << " is not in docs/metrics.md";
    EXPECT_EQ(of, page[name]) << name;
  }
}

TEST_F(MetricsOfADaemon, AreBesideProbesAndWhatThePageShows) {
  auto answer = [&](const std::string& path) {
    return test::http(port, "GET " + path + " HTTP/1.0\r\n\r\n");
  };
  EXPECT_TRUE(answer("/healthz").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(answer("/readyz").starts_with("HTTP/1.1 200 "));
  EXPECT_NE(answer("/").find("<title>terraced</title>"), std::string::npos);
  tester client(daemon.socket(), "an engine");
  client.store(chain_of(1, 1));
  EXPECT_NE(answer("/clients.json").find("\"name\":\"an engine\""), std::string::npos);
  auto chain = chain_of(2, 1);
  client.store(chain);
  auto lease = client.lookup(chain, true);
  ASSERT_TRUE(client->admin().revoke(lease.held.id(), patiently()));
  ASSERT_TRUE(client->admin().shut_down(true, patiently())); // drains until the client leaves
  EXPECT_TRUE(answer("/readyz").starts_with("HTTP/1.1 503 ")) << "nobody else is admitted";
  EXPECT_TRUE(answer("/healthz").starts_with("HTTP/1.1 200 "));
  daemon.is_not_checked();
}

struct MetricsOfWriteBack : MetricsOfADaemon {
  MetricsOfWriteBack() : MetricsOfADaemon(32 * mebibyte, "demotion = \"write_back\"\n") {}
};

TEST_F(MetricsOfWriteBack, EachHasAProducer) {
  ASSERT_TRUE(daemon.await_log("joined"));
  put_under_load(daemon);
  for (const std::string& name : raised_by_demotion)
    EXPECT_TRUE(eventually([&] {
      exposed seen = now();
      return seen.sum_of(name + "{") + seen.sum_of(name + "_count{") > 0;
    })) << name;
}

TEST_F(MetricsOfADaemon, TimeReuseAndEvictionPerTier) {
  ASSERT_TRUE(daemon.await_log("joined"));
  put_under_load(daemon);
  for (std::string tier : {"host", "disk"}) {
    std::string of = "{group=\"default\",tier=\"" + tier + "\"";
    EXPECT_TRUE(eventually([&] {
      exposed seen = now();
      return seen.sum_of("terrace_tier_reuse_interval_seconds_count" + of) > 0 &&
             seen.sum_of("terrace_tier_eviction_age_seconds_count" + of) ==
                 seen.sum_of("terrace_tier_evictions_total" + of + ",reason=\"space\"");
    })) << tier;
    EXPECT_GT(now().sum_of("terrace_tier_evictions_total" + of + ",reason=\"space\""), 0) << tier;
  }
}

struct MetricsOfHostMemory : MetricsOfADaemon {
  MetricsOfHostMemory() : MetricsOfADaemon(0) {}
};

TEST_F(MetricsOfHostMemory, CountRefusalsForWantOfRoomApartFromDrops) {
  tester client(daemon.socket());
  std::string dropped = "terrace_tier_dropped_total{group=\"default\",tier=\"host\"}";
  std::string no_room = "terrace_tier_refused_total{group=\"default\",tier=\"host\",reason=\"no_room\"}";
  for (uint64_t i = 0; i < 10; ++i)
    client.store(chain_of(i, 4)); // evictions do not count as drops
  EXPECT_EQ(now().samples[dropped], 0);
  EXPECT_EQ(now().samples[no_room], 0);
  auto leases = occupy(client, 100, objects_in(16 * mebibyte));
  auto refused = client->store(client.store_of(chain_of(200, 2)),
                               client::within(std::chrono::seconds(2))); // long enough to wait in the tier
  EXPECT_FALSE(refused);
  EXPECT_TRUE(eventually([&] { return now().samples[no_room] > 0; }));
  EXPECT_EQ(now().samples[dropped], 0) << "no eviction could have made room";
}

TEST_F(MetricsOfHostMemory, CountChunksThatTheirLastRankHasLeftIncomplete) {
  auto spec = test_space();
  spec.world_size = 2;
  tester first(daemon.socket(), "rank 0", 8 * object_bytes, spec);
  auto chain = chain_of(1, 4);
  EXPECT_EQ(first.store(chain), 4U);
  std::string unusable = "terrace_tier_evictions_total{group=\"default\",tier=\"host\",reason=\"unusable\"}";
  {
    spec.rank = 1;
    tester second(daemon.socket(), "rank 1", 8 * object_bytes, spec);
    EXPECT_EQ(second.store({chain.begin(), chain.begin() + 2}), 2U);
    EXPECT_EQ(first.lookup(chain, true).found_chunks, 2U);
    EXPECT_EQ(now().samples[unusable], 0); // its missing objects may still come
  }
  while (first.tier("host").objects != 4) // waits until the daemon has noticed
    EXPECT_EQ(first.lookup(chain, true).found_chunks, 2U);
  EXPECT_EQ(now().samples[unusable], 2);
}

} // namespace
} // namespace terrace::e2e
