// Replays random requests with a remote tier behind links of 1 MB/s to 10 GB/s and 0.1 to 50 ms, in simulated time. With the choice
// they take at most 5 % longer than without the remote tier, the first trial included; and where the link is good they take
// hardly longer than if everything were read.
#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"
#include "tests/support/seed.hpp"
#include "tier/search/recompute_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>

using namespace terrace;

namespace remote_replay_test {

using time_point = read_meter::time_point;

time_point time_at(double s) {
  return time_point(std::chrono::duration_cast<time_point::duration>(std::chrono::duration<double>(s)));
}

/// A link to a store that answers in order. It has so many bytes under way as a remote store asks for
/// (remote/endpoint_state.hpp), in parts. Times in seconds.
class far_link {
 public:
  static constexpr uint64_t window_min = 4 << 20, window_max = 64 << 20;
  static constexpr uint64_t part_bytes = 1 << 20;
  static constexpr uint64_t piece_bytes = 64 << 10; ///< received at a time

  far_link(double bytes_per_s, double latency_s) : bytes_per_s_(bytes_per_s), latency_s_(latency_s) {}

  void become(double bytes_per_s, double latency_s) {
    bytes_per_s_ = bytes_per_s;
    latency_s_ = latency_s;
  }

  /// Asks for an object. Returns when it will have come.
  double ask(uint64_t bytes, double now) {
    meter.has_to_read(to_read_, to_read_ + bytes, time_at(now));
    to_read_ += bytes;
    for (; bytes != 0; bytes -= std::min(bytes, part_bytes))
      ask_part(std::min(bytes, part_bytes), now);
    return free_;
  }

  /// Whatever comes until then comes.
  void go_on(double until) {
    for (; !values_.empty(); values_.pop_front()) {
      value& next = values_.front();
      if (next.first > until)
        return;
      if (!std::exchange(next.began, true))
        meter.answered(std::min(piece_bytes, next.bytes), time_at(next.first));
      if (next.done > until)
        return;
      meter.arrived(next.bytes, time_at(next.done));
      meter.has_to_read(to_read_, to_read_ - next.bytes, time_at(next.done));
      to_read_ -= next.bytes;
    }
  }

  /// What was not asked for yet is not asked for.
  void let_go(double now) {
    while (!values_.empty() && values_.back().sent > now) {
      meter.has_to_read(to_read_, to_read_ - values_.back().bytes, time_at(now));
      to_read_ -= values_.back().bytes;
      values_.pop_back();
    }
    free_ = values_.empty() ? std::min(free_, now) : values_.back().done;
  }

  read_meter meter;

 private:
  void ask_part(uint64_t bytes, double now) {
    const double rate = meter.state(time_at(now)).bytes_per_s;
    const auto window = std::clamp(static_cast<uint64_t>(2 * rate * latency_s_), window_min, window_max);
    double sent = now;
    uint64_t before = bytes; // of those that are under way at the same time, the youngest first
    for (auto each = values_.rbegin(); each != values_.rend(); ++each)
      if ((before += each->bytes) > window) {
        sent = std::max(sent, each->done);
        break;
      }
    const double begins = std::max(sent + latency_s_, free_);
    const auto first = static_cast<double>(std::min(piece_bytes, bytes));
    free_ = begins + static_cast<double>(bytes) / bytes_per_s_;
    values_.push_back({bytes, sent, begins + first / bytes_per_s_, free_});
  }

  struct value {
    uint64_t bytes;
    double sent, first, done;
    bool began = false;
  };
  double bytes_per_s_, latency_s_;
  double free_ = 0;
  uint64_t to_read_ = 0;
  std::deque<value> values_;
};

struct link_speed {
  double bytes_per_s, latency_s;
};

/// One client, whose KV is in host memory or behind the link.
struct far_client {
  far_client(uint64_t seed, link_speed speed, uint64_t object_bytes, double its_tokens_per_s)
      : tokens_per_s(its_tokens_per_s), link(speed.bytes_per_s, speed.latency_s), random(seed),
        read_all(speed.bytes_per_s, speed.latency_s) {
    spec.chunk_tokens = 256;
    spec.pools[0].object_bytes = object_bytes;
  }

  space_spec spec = terrace::test::small_space();
  double tokens_per_s;
  far_link link;
  bool chooses = true;  ///< false: it reads all that is found
  bool gives_up = true; ///< false: it waits until all has come
  std::mt19937_64 random;

  double now = 7200, without = 0, all = 0;
  far_link read_all; ///< of a client that reads everything
  double all_now = 7200;
  size_t late = 0; ///< requests whose read fell behind

  double compute_s(size_t chunks) const {
    return static_cast<double>(chunks) * spec.chunk_tokens / tokens_per_s;
  }
  double took() const { return now - 7200; }

  void request() {
    const auto chunks = static_cast<uint32_t>(random() % 60 + 1);
    const auto in_host = static_cast<uint32_t>(random() % (chunks + 1));
    tier_answer host{tier_kind::host, object_bitmap(chunks)}, far{tier_kind::remote, object_bitmap(chunks)};
    for (uint32_t i = 0; i < chunks; ++i)
      (i < in_host ? host : far).present.set(i);
    const uint64_t object = physical_bytes_for(spec.pools[0].object_bytes);
    prefix_planner planner(spec, {chunks, 0, UINT64_MAX}, {std::move(host), std::move(far)});
    while (planner.step())
      ;
    uint32_t offered = planner.plan().found_chunks;
    double until = HUGE_VAL;
    link.go_on(now);
    if (chooses) {
      recompute_terms terms{.tokens_per_s = tokens_per_s};
      terms.tiers[static_cast<size_t>(tier_kind::remote)] = link.meter.state(time_at(now));
      recompute_choice choice(planner, spec, terms);
      while (choice.step())
        ;
      offered = choice.chunks();
      if (gives_up)
        until = now + choice.patience_s();
    }
    const double last_s = compute_s(1); // its last tokens are always computed
    without += last_s + compute_s(chunks - in_host);
    all_now += last_s;
    for (uint32_t i = in_host; i < chunks; ++i)
      all = read_all.ask(object, all_now);
    all_now = std::max(all_now, in_host == chunks ? 0 : all);
    read_all.go_on(all_now);

    double came = now;
    uint32_t there = std::min(in_host, offered);
    for (uint32_t i = in_host; i < offered; ++i) {
      const double done = link.ask(object, now);
      if (done <= until) {
        ++there;
        came = done;
      }
    }
    if (there < std::max(offered, in_host) && offered > in_host) {
      ++late;
      came = until;
    }
    link.go_on(came);
    if (there < offered)
      link.let_go(came);
    now = came + last_s + compute_s(chunks - there);
    link.go_on(now);
  }
  void requests(int count) {
    for (int i = 0; i < count; ++i)
      request();
  }
};

const double rates[] = {1e6, 10e6, 100e6, 1e9, 10e9};
const double latencies[] = {0.1e-3, 1e-3, 10e-3, 50e-3};

struct RemoteReplay : ::testing::TestWithParam<std::tuple<double, double>> {
  link_speed speed() const { return {std::get<0>(GetParam()), std::get<1>(GetParam())}; }
};

std::string text_of(const far_client& of) {
  return "object " + std::to_string(of.spec.pools[0].object_bytes) + ", prefill " +
         std::to_string(of.tokens_per_s) + " tokens/s: " + std::to_string(of.took()) + " s, without " +
         std::to_string(of.without) + " s, all read " + std::to_string(of.all_now - 7200) + " s, late " +
         std::to_string(of.late);
}

/// The last is that of a large model: 128 KiB for each token.
constexpr uint64_t objects[] = {256 << 10, 2 << 20, 32 << 20};
constexpr double prefills[] = {1'000, 10'000, 100'000};

TEST_P(RemoteReplay, IsNeverSlowerThanWithoutTheRemoteAndUsesAGoodLink) {
  auto seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  for (uint64_t object : objects)
    for (double prefill : prefills) {
      far_client client(++seed, speed(), object, prefill);
      client.requests(200);
      const double all = client.all_now - 7200;
      EXPECT_LE(client.took(), 1.05 * client.without) << text_of(client);
      if (all <
          0.8 * client.without) { // the link is good for this client, which has most of what it can gain
        EXPECT_LE(client.took(), client.without - 0.8 * (client.without - all)) << text_of(client);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Links, RemoteReplay,
                         ::testing::Combine(::testing::ValuesIn(rates), ::testing::ValuesIn(latencies)));

/// The test above can fail: it does without the choice.
TEST(RemoteReplayWithout, TheChoiceASlowLinkMakesItSlower) {
  far_client client(1, {10e6, 10e-3}, 2 << 20, 10'000);
  client.chooses = false;
  client.requests(200);
  EXPECT_GT(client.took(), 2 * client.without);
}

/// It does where nobody gives up a read that has fallen behind.
TEST(RemoteReplayWithout, AnEndOfReadsTheFirstTrialOfASlowLinkMakesItSlower) {
  far_client client(1, {1e6, 50e-3}, 2 << 20, 10'000);
  client.gives_up = false;
  client.requests(40);
  EXPECT_GT(client.took(), 1.05 * client.without) << text_of(client);
}

TEST(RemoteReplayOfALink, ThatBecomesSlowCostsLittle) {
  far_client client(terrace::test::test_seed(), {1e9, 1e-3}, 2 << 20, 10'000);
  client.requests(200);
  EXPECT_LT(client.took(), 0.5 * client.without);
  client.link.become(1e6, 50e-3);
  const double took = client.took(), without = client.without;
  client.requests(200);
  EXPECT_LE(client.took() - took, 1.05 * (client.without - without)) << text_of(client);
  EXPECT_GT(client.late, 0u);
}

TEST(RemoteReplayOfALink, ThatBecomesFastAgainIsUsedAgain) {
  far_client client(terrace::test::test_seed(), {1e6, 50e-3}, 2 << 20, 10'000);
  client.requests(200);
  client.link.become(1e9, 1e-3);
  client.requests(500);
  const double took = client.took(), without = client.without;
  client.requests(200);
  EXPECT_LT(client.took() - took, 0.5 * (client.without - without)) << text_of(client);
}

} // namespace remote_replay_test
