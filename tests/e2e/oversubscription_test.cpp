// Eight clients that together want four times what host memory has: nothing is dropped, nobody waits forever,
// and everybody gets a share.
#include "hungry_client.hpp"

#include "tests/support/process_memory.hpp"
#include "tests/support/scrape.hpp"
#include "tests/support/seed.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <sstream>
#include <thread>

namespace terrace::e2e {
namespace oversubscription_test {

using std::chrono::steady_clock;

constexpr size_t clients = 8;
constexpr uint64_t host_bytes = 32 * mebibyte;
static_assert(clients * hungry_client::chunks_in_all * hungry_client::held_bytes >= 4 * host_bytes);

/// Returns the sum of all samples of a metric whose labels contain the text.
double sum_of(const std::string& metrics, const std::string& name, const std::string& label = {}) {
  double sum = 0;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + "{") && line.find(label) != std::string::npos)
      sum += std::stod(line.substr(line.rfind(' ')));
  return sum;
}

/// The daemon's memory after each piece of work of one client.
class memory_record {
 public:
  void add(uint64_t bytes) { bytes_.push_back(bytes); }
  /// Returns the maximum in a part of the run, from 0 to 1.
  uint64_t most(double from, double to) const {
    auto at = [&](double part) {
      return bytes_.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(bytes_.size()));
    };
    return at(from) == at(to) ? 0 : *std::max_element(at(from), at(to));
  }

 private:
  std::vector<uint64_t> bytes_;
};

struct overload {
  const char* name;
  bool disk;
  const char* demotion = "write_through";
  uint64_t chunks = 24'000; ///< chunks moved by the client that moves most
};

void PrintTo(const overload& one, std::ostream* out) { *out << one.name; }

class Oversubscription : public ::testing::TestWithParam<overload> {
 protected:
  void SetUp() override {
    port_ = test::free_port();
    daemon_ = std::make_unique<daemon_under_test>(
        daemon_options{.host_bytes = host_bytes,
                       .disk_bytes = GetParam().disk ? 8 * host_bytes : 0,
                       .disk = std::string("demotion = \"") + GetParam().demotion + "\"\n",
                       .lease = {}, // the default
                       .metrics = "127.0.0.1:" + std::to_string(port_)});
    course_.prefetches = GetParam().disk;
    course_.seed = terrace::test::test_seed();
    if (GetParam().disk) {
      EXPECT_TRUE(daemon_->await_log("joined"));
    }
  }

  /// Works until the run is over.
  void let_them_work() {
    for (size_t i = 0; i < clients; ++i)
      clients_.push_back(std::make_unique<hungry_client>(daemon_->socket(), i, course_));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < clients; ++i)
      threads.emplace_back([this, i] {
        clients_[i]->work(i == 0 ? [this] { memory_.add(test::resident_bytes(daemon_->pid(), "RssAnon")); }
                                 : std::function<void()>());
        course_.over = true; // a failed client ends the run
      });
    for (auto& thread : threads)
      thread.join();
  }

  void report() {
    auto metrics = test::scrape(port_);
    std::cout << terrace::test::seed_text(course_.seed) << '\n';
    for (const auto& one : clients_) {
      std::cout << "moved " << one->moved() << " (loaded " << one->loaded() << ", prefetched "
                << one->prefetched() << "), longest wait " << one->longest_wait().count() << " s ("
                << one->longest_of() << ")\n";
    }
    std::cout << "prefetch refused " << sum_of(metrics, "terrace_tier_prefetch_refused_total")
              << ", connection stalls " << sum_of(metrics, "terrace_connection_stalls_total") << ", evicted "
              << sum_of(metrics, "terrace_tier_evictions_total") << ", without victim "
              << sum_of(metrics, "terrace_tier_evictions_without_victim_total") << ", memory "
              << (memory_.most(0, 0.25) >> 20) << " then " << (memory_.most(0.25, 1) >> 20) << " MiB\n";
  }

  void expect_nothing_dropped() {
    auto metrics = test::scrape(port_);
    EXPECT_EQ(sum_of(metrics, "terrace_tier_dropped_total"), 0);
    EXPECT_EQ(sum_of(metrics, "terrace_tier_refused_total", "reason=\"no_room\""), 0);
    for (const char* verb : {"store", "load", "lookup", "release"})
      EXPECT_EQ(sum_of(metrics, "terrace_requests_total", std::string("verb=\"") + verb + "\""),
                sum_of(metrics, "terrace_requests_total", std::string("verb=\"") + verb + "\",code=\"ok\""))
          << verb;
    EXPECT_GT(sum_of(metrics, "terrace_tier_evictions_total", "tier=\"host\""), 0);
  }

  void expect_shares() {
    std::vector<uint64_t> moved;
    for (const auto& one : clients_)
      moved.push_back(one->moved());
    uint64_t all = std::accumulate(moved.begin(), moved.end(), uint64_t{0});
    EXPECT_GE(*std::min_element(moved.begin(), moved.end()) * 4 * clients, all) << "a quarter of a share";
  }

  void expect_bounded_memory() {
    if (test::sanitized()) // sanitizers keep freed memory
      return;
    EXPECT_LE(memory_.most(0.25, 1), memory_.most(0, 0.25) + 8 * mebibyte);
  }

  /// Checks that nobody holds or waits for anything, and that everything in host memory can make room.
  void expect_all_given_back() {
    clients_.clear();
    tester after(daemon_->socket(), "after");
    EXPECT_EQ(leased_objects(after, 0), 0U);
    EXPECT_EQ(after.tier("host").waiting_requests, 0U);
    EXPECT_EQ(occupy(after, 1, objects_in(host_bytes) / 2).size(), objects_in(host_bytes) / 2);
  }

  std::chrono::duration<double> longest_wait() const {
    std::chrono::duration<double> longest{};
    for (const auto& one : clients_)
      longest = std::max(longest, one->longest_wait());
    return longest;
  }

  uint16_t port_ = 0;
  std::unique_ptr<daemon_under_test> daemon_;
  hungry_course course_;
  std::vector<std::unique_ptr<hungry_client>> clients_;
  memory_record memory_;
};

TEST_P(Oversubscription, OfFourTimesTheMemoryDropsNothingAndLeavesEachClientAShare) {
  course_.chunks_wanted = test::sanitized() ? 2000 : GetParam().chunks;
  let_them_work();
  report();
  expect_shares();
  expect_nothing_dropped();
  expect_bounded_memory();
  expect_all_given_back();
}

class OversubscriptionSlow : public Oversubscription {
 protected:
  void SetUp() override {
    if (std::getenv("TERRACE_SLOW_TESTS") == nullptr)
      GTEST_SKIP() << "takes ten minutes; set TERRACE_SLOW_TESTS to run it";
    Oversubscription::SetUp();
  }
};

TEST_P(OversubscriptionSlow, ForTenMinutesWithoutAStallOfASecond) {
  course_.until = steady_clock::now() + std::chrono::minutes(10);
  let_them_work();
  report();
  expect_shares();
  expect_nothing_dropped();
  expect_bounded_memory();
  EXPECT_LT(longest_wait(), std::chrono::seconds(1));
  expect_all_given_back();
}

/// Leases, and stores that take seconds, hold all of host memory; then a prefetch waits for some, and then a
/// store does.
TEST(OversubscribedMemory, APrefetchIsRefusedOnceAStoreWaitsAndNoStoreIs) {
  uint16_t port = test::free_port();
  daemon_under_test daemon({.host_bytes = 8 * mebibyte,
                            .disk_bytes = 96 * mebibyte,
                            .metrics = "127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 4);
  EXPECT_EQ(tester(daemon.socket()).store(chain), 4U);
  ASSERT_EQ(daemon.terminate(), 0); // from now on it is only on disk
  daemon.start();
  ASSERT_TRUE(daemon.await_log("4 objects found"));
  tester client(daemon.socket());
  auto leases = occupy(client, 500, objects_in(8 * mebibyte) - 2);
  slow_client slow(daemon.socket(), "slow", 1);
  bool refused = false;
  for (uint32_t n = 0; n < chain.size() && !refused;
       ++n) { // on a busy machine they may end before the others ask
    auto holding = slow.store(100 + 10 * n, 2);
    ASSERT_TRUE(eventually([&] { return client.tier("host").free_bytes < object_bytes; }));
    client::prefetch_request ahead;
    ahead.in = client.space();
    ahead.what = client::prefix::of_digests({&chain[n], 1});
    ahead.rule = client::stop_rule::wait;
    auto prefetch = client->async().prefetch(ahead, patiently());
    ASSERT_TRUE(prefetch);
    ASSERT_TRUE(eventually([&] { return client.tier("host").waiting_requests > 0 || prefetch->ready(); }));
    auto other = chain_of(200 + n, 1);
    auto store = client->async().store(client.store_of(other), patiently());
    ASSERT_TRUE(store);
    auto done = prefetch->wait(patiently());
    ASSERT_TRUE(done) << done.error().text;
    refused = done->end == client::prefetch_end::no_room;
    auto stored = store->wait(patiently());
    EXPECT_TRUE(stored) << stored.error().text;
    for (auto& each : holding)
      EXPECT_TRUE(each.wait(patiently()));
  }
  EXPECT_TRUE(refused);
  auto metrics = test::scrape(port);
  EXPECT_GT(sum_of(metrics, "terrace_tier_prefetch_refused_total"), 0);
  EXPECT_EQ(sum_of(metrics, "terrace_tier_dropped_total"), 0);
}

std::string name_of(const ::testing::TestParamInfo<overload>& one) { return one.param.name; }

constexpr overload overloads[] = {
    {"HostMemoryAlone", false}, {"WithADisk", true}, {"WithWriteBack", true, "write_back", 8'000}};

INSTANTIATE_TEST_SUITE_P(Tiers, Oversubscription, ::testing::ValuesIn(overloads), name_of);
INSTANTIATE_TEST_SUITE_P(Tiers, OversubscriptionSlow, ::testing::ValuesIn(overloads), name_of);

} // namespace oversubscription_test
} // namespace terrace::e2e
