// Orders against the textbook, in lists that are slow and obvious: objects without parents, one leaves for one that comes.
#include "tests/policy/policy_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace::testing {
namespace {

struct item {
  uint64_t number;
  uint64_t uses = 1;
  uint64_t last = 0;
  bool mark = false;
};
using items = std::vector<item>; ///< the first to come first

struct model {
  items list;
  size_t hand = 0;

  items::iterator find(uint64_t number) {
    return std::find_if(list.begin(), list.end(), [&](const item& i) { return i.number == number; });
  }
};

items::iterator least_recent(model& m) {
  return std::min_element(m.list.begin(), m.list.end(),
                          [](const item& a, const item& b) { return a.last < b.last; });
}

items::iterator most_recent(model& m) {
  return std::max_element(m.list.begin(), m.list.end(),
                          [](const item& a, const item& b) { return a.last < b.last; });
}

items::iterator first_come(model& m) { return m.list.begin(); }

items::iterator least_used(model& m) {
  return std::min_element(m.list.begin(), m.list.end(), [](const item& a, const item& b) {
    return std::tie(a.uses, a.last) < std::tie(b.uses, b.last);
  });
}

items::iterator sieved(model& m) {
  for (;; ++m.hand) {
    m.hand %= m.list.size();
    if (!m.list[m.hand].mark)
      break;
    m.list[m.hand].mark = false;
  }
  auto victim = m.list.begin() + static_cast<std::ptrdiff_t>(m.hand);
  if (m.hand + 1 == m.list.size())
    m.hand = 0; // the end is reached before the next one comes
  return victim;
}

struct textbook {
  std::string_view policy;
  items::iterator (*victim)(model&);
};

class Reference : public ::testing::TestWithParam<textbook> {};

TEST_P(Reference, NamesWhomTheTextbookNames) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  for (size_t capacity : {1, 5, 40}) {
    eviction_tracker tracker(seed);
    use_policy(tracker, 0, GetParam().policy);
    model textbook;
    for (policy_time now = 1; now < 8'000; ++now) {
      // Some are asked for much more often than others, and favourites change.
      uint64_t number = 1 + random() % (1 + random() % (3 * capacity)) + now / 2'000;
      entry_key key{number, number};
      if (auto known = textbook.find(number); known != textbook.list.end()) {
        tracker.hit(0, key, now << access_clock::tick_shift);
        *known = {number, known->uses + 1, now, true};
        continue;
      }
      if (textbook.list.size() == capacity) {
        auto leaving = GetParam().victim(textbook);
        auto named = tracker.victims(0, {1}, now << access_clock::tick_shift);
        ASSERT_EQ(named.size(), 1u);
        ASSERT_EQ(named[0].key.high, leaving->number) << "at " << now << " of " << capacity;
        tracker.erase(0, named[0].key);
        textbook.list.erase(leaving);
      }
      tracker.insert(0, {key, {}, 1}, now << access_clock::tick_shift);
      textbook.list.push_back({number, 1, now, false});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, Reference,
                         ::testing::Values(textbook{"lru", least_recent}, textbook{"mru", most_recent},
                                           textbook{"fifo", first_come}, textbook{"lfu", least_used},
                                           textbook{"sieve", sieved}),
                         [](const auto& which) { return std::string(which.param.policy); });

} // namespace
} // namespace terrace::testing
