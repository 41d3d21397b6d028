// kmg against a list: for each eviction the kind of each resident's last use is determined anew, and all
// residents are compared. The oldest leaves, or the one of least value if its value is clearly less. The
// values come from the model, which survival_model_test.cpp examines.
#include "tests/policy/policy_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

namespace terrace::test {
namespace {

/// The facts about a single chunk that requests ask for, resident or not.
struct known_chunk {
  access_history::kind kind;
  uint64_t last = 0; ///< tick of the last use
  bool resident = false;
};

struct naive_kmg {
  std::map<uint64_t, known_chunk> chunks;

  void use(uint64_t number, uint64_t tick, request_ending how) {
    bool returns = chunks.contains(number);
    known_chunk& c = chunks[number];
    c.kind.uses = returns ? c.kind.uses + 1 : 1;
    c.kind.added = returns ? 0 : 1;
    c.kind.starts = 1;
    c.kind.pause_seconds = {};
    if (returns)
      c.kind.pause_seconds =
          static_cast<uint32_t>(static_cast<double>(tick - c.last) / age_bins::ticks_per_second);
    c.kind.how = how;
    c.last = tick;
  }
  uint64_t victim(const survival_model& model, uint64_t tick) const {
    auto value = [&](const known_chunk& c) {
      auto kind = c.kind;
      kind.uses = std::min(kind.uses, access_history::count_max);
      return model.value(access_history::class_for(kind), tick - c.last);
    };
    auto first_by = [&](auto rank) {
      return *std::min_element(chunks.begin(), chunks.end(), [&](const auto& a, const auto& b) {
        return std::tuple(!a.second.resident, rank(a.second)) <
               std::tuple(!b.second.resident, rank(b.second));
      });
    };
    auto least = first_by([&](const known_chunk& c) { return std::tuple(value(c), c.last); });
    auto oldest = first_by([&](const known_chunk& c) { return c.last; });
    return value(oldest.second) <= 1.1F * value(least.second) ? oldest.first : least.first;
  }
};

TEST(KmgReference, NamesTheOldestUnlessAnotherIsClearlyWorthLess) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  for (size_t capacity : {1, 5, 20, 60}) { // all are compared, without samples
    eviction_tracker tracker(seed);
    use_policy(tracker, 0, "kmg");
    naive_kmg expected;
    size_t residents = 0, learned = 0;
    uint64_t tick = 1;
    for (int step = 0; step < 6'000; ++step) {
      tick += 1 + random() % (uint64_t{1} << random() % 13);
      policy_time now = tick << access_clock::tick_shift;
      uint64_t number = 1 + random() % (1 + random() % (3 * capacity));
      std::vector chain{entry_key{number, number}};
      auto request = tracker.begin_request(chain, {.space = 1}, now);
      expected.use(number, tick, request_ending::untold); // until the request ends
      if (!expected.chunks[number].resident) {
        if (residents == capacity) {
          uint64_t leaving = expected.victim(*tracker.model_of(1), tick);
          auto named = tracker.victims(0, {1, request}, now);
          ASSERT_EQ(named.size(), 1u);
          ASSERT_EQ(named[0].key.high, leaving) << "at step " << step << " of " << capacity;
          learned += expected.chunks[leaving].last !=
                     std::min_element(expected.chunks.begin(), expected.chunks.end(), [](auto& a, auto& b) {
                       return std::tuple(!a.second.resident, a.second.last) <
                              std::tuple(!b.second.resident, b.second.last);
                     })->second.last;
          tracker.erase(0, named[0].key);
          expected.chunks[leaving].resident = false;
          --residents;
        }
        tracker.insert(0, {chain[0], {}, 1}, now, request);
        expected.chunks[number].resident = true;
        ++residents;
      }
      request_outcome outcome{.session_closed =
                                  number % 3 == 0}; // a third say that they are done, although they are not
      if (number % 3 == 1)
        outcome.reason = finish_reason::tool_call;
      tracker.end_request(request, outcome, now);
      if (auto how = ending_of(outcome, {}); how != request_ending::untold)
        expected.chunks[number].kind.how = how;
    }
    if (capacity > 1) {
      EXPECT_GT(learned, 0U); // the result was not always the same as with lru
    }
  }
}

} // namespace
} // namespace terrace::test
