// Every policy against its textbook version: lists that are slow and obvious. Objects have no parents, and
// one leaves for each that arrives.
#include "tests/policy/policy_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <tuple>

namespace terrace::test {
namespace {

struct item {
  uint64_t number = 0;
  uint64_t uses = 1;
  uint64_t last = 0;   ///< time of the last use
  uint64_t before = 0; ///< time of the use before that; 0: none
  uint64_t mark = 0;   ///< the model's own mark
};
using items = std::vector<item>;

items::iterator find(items& in, uint64_t number) {
  return std::find_if(in.begin(), in.end(), [&](const item& i) { return i.number == number; });
}

template <class Rank>
items::iterator least(items& in, Rank rank) {
  return std::min_element(in.begin(), in.end(),
                          [&](const item& a, const item& b) { return rank(a) < rank(b); });
}

uint64_t last_use(const item& i) { return i.last; }

/// The residents in order of arrival. By default a victim is the first of them.
class model {
 public:
  virtual ~model() = default;

  bool has(uint64_t number) { return find(residents, number) != residents.end(); }
  size_t size() const { return residents.size(); }

  void use(uint64_t number, uint64_t now, uint8_t priority) {
    item& i = *find(residents, number);
    i = {number, i.uses + 1, now, i.last, i.mark};
    on_use(i, priority);
  }
  void add(uint64_t number, uint64_t now, uint8_t priority) {
    residents.push_back({.number = number, .last = now});
    on_add(residents.back(), priority);
  }
  /// Returns the number of the victim, which leaves.
  uint64_t evict() {
    auto leaving = victim();
    item gone = *leaving;
    residents.erase(leaving);
    on_evict(gone);
    return gone.number;
  }

 protected:
  virtual items::iterator victim() { return residents.begin(); }
  virtual void on_use(item&, uint8_t /*priority*/) {}
  virtual void on_add(item&, uint8_t /*priority*/) {}
  virtual void on_evict(const item&) {}

  items residents;
};

class fifo_model : public model {};

class lru_model : public model {
  items::iterator victim() override { return least(residents, last_use); }
};

class mru_model : public model {
  items::iterator victim() override {
    return least(residents, [](const item& i) { return ~i.last; });
  }
};

class lfu_model : public model {
  items::iterator victim() override {
    return least(residents, [](const item& i) { return std::tuple(i.uses, i.last); });
  }
};

/// The mark is the priority.
class priority_model : public model {
  void on_use(item& i, uint8_t priority) override { i.mark = priority; }
  void on_add(item& i, uint8_t priority) override { i.mark = priority; }
  items::iterator victim() override {
    return least(residents, [](const item& i) { return std::tuple(i.mark, i.last); });
  }
};

/// The mark is the visited bit.
class sieve_model : public model {
  void on_use(item& i, uint8_t) override { i.mark = 1; }
  items::iterator victim() override {
    for (hand %= residents.size(); residents[hand].mark != 0; hand = (hand + 1) % residents.size())
      residents[hand].mark = 0;
    auto found = residents.begin() + static_cast<std::ptrdiff_t>(hand);
    if (hand + 1 == residents.size())
      hand = 0; // the end is reached before the next one arrives
    return found;
  }
  size_t hand = 0;
};

/// The mark means protected.
class slru_model : public model {
  void on_use(item& used, uint8_t) override {
    used.mark = 1;
    auto is_protected = [](const item& i) { return i.mark == 1; };
    while (2 * std::count_if(residents.begin(), residents.end(), is_protected) >
           static_cast<std::ptrdiff_t>(residents.size()))
      least(residents, [](const item& i) { return std::tuple(i.mark == 0, i.last); })->mark = 0;
  }
  items::iterator victim() override {
    return least(residents, [](const item& i) { return std::tuple(i.mark, i.last); });
  }
};

/// Counts uses before an eviction. Entries used once come first.
class lru2_model : public model {
  void on_add(item& i, uint8_t) override {
    if (auto known = find(ghosts, i.number); known != ghosts.end()) {
      i.before = known->last;
      ghosts.erase(known);
    }
  }
  void on_evict(const item& i) override { ghosts.push_back(i); }
  items::iterator victim() override {
    return least(residents,
                 [](const item& i) { return std::tuple(i.before != 0, i.before == 0 ? i.last : i.before); });
  }
  items ghosts;
};

/// The lists hold numbers, the next to be examined first; the mark counts uses, at most 3.
class s3fifo_model : public model {
  void on_use(item& i, uint8_t) override { i.mark = std::min<uint64_t>(3, i.mark + 1); }
  void on_add(item& i, uint8_t) override {
    bool returns = std::erase(ghosts, i.number) != 0;
    (returns ? main : arrivals).push_back(i.number);
  }
  void on_evict(const item& i) override {
    if (std::erase(arrivals, i.number) != 0)
      ghosts.push_back(i.number);
    std::erase(main, i.number);
  }
  items::iterator victim() override {
    for (;;) {
      bool from_arrivals = 2 * arrivals.size() >= residents.size();
      auto& queue = from_arrivals ? arrivals : main;
      auto head = find(residents, queue.front());
      if (head->mark <= (from_arrivals ? 1 : 0))
        return head;
      head->mark = from_arrivals ? 0 : head->mark - 1;
      queue.erase(queue.begin());
      main.push_back(head->number);
    }
  }
  std::vector<uint64_t> arrivals, main, ghosts;
};

/// The mark means: in T2. The ghosts are in order of their eviction. The paper's c is the number of residents.
class arc_model : public model {
  double in(uint64_t mark) const {
    return static_cast<double>(
        std::count_if(residents.begin(), residents.end(), [&](const item& i) { return i.mark == mark; }));
  }
  void on_use(item& i, uint8_t) override { i.mark = 1; }
  void on_add(item& i, uint8_t) override {
    double b1 = static_cast<double>(once.size()), b2 = static_cast<double>(often.size());
    if (std::erase(once, i.number) != 0) {
      target = std::min(static_cast<double>(residents.size()), target + std::max(1.0, b2 / b1));
      i.mark = 1;
    } else if (std::erase(often, i.number) != 0) {
      target = std::max(0.0, target - std::max(1.0, b1 / b2));
      i.mark = 1;
    }
  }
  void on_evict(const item& gone) override {
    (gone.mark == 0 ? once : often).push_back(gone.number);
    double c = static_cast<double>(residents.size()) + 1;
    while (static_cast<double>(once.size()) > c - in(0))
      once.erase(once.begin());
    while (!often.empty() && static_cast<double>(once.size() + often.size() + residents.size()) > 2 * c)
      often.erase(often.begin());
  }
  items::iterator victim() override {
    uint64_t from = in(0) > target || in(1) == 0 ? 0 : 1;
    return least(residents, [&](const item& i) { return std::tuple(i.mark != from, i.last); });
  }
  std::vector<uint64_t> once, often;
  double target = 0;
};

struct textbook {
  std::string_view policy;
  std::function<std::unique_ptr<model>()> make;
};

template <class Model>
textbook book(std::string_view policy) {
  return {policy, [] { return std::make_unique<Model>(); }};
}

const std::vector<textbook> textbooks = {
    book<lru_model>("lru"),           book<lfu_model>("lfu"),     book<fifo_model>("fifo"),
    book<mru_model>("mru"),           book<slru_model>("slru"),   book<s3fifo_model>("s3fifo"),
    book<arc_model>("arc"),           book<sieve_model>("sieve"), book<lru2_model>("lru2"),
    book<priority_model>("priority"),
};

class Reference : public ::testing::TestWithParam<textbook> {};

TEST_P(Reference, NamesWhomTheTextbookNames) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  for (size_t round = 0; round < 100; ++round) {
    const size_t capacity = std::array<size_t, 5>{1, 2, 5, 15, 40}[round % 5];
    eviction_tracker tracker(seed);
    use_policy(tracker, 0, GetParam().policy);
    auto expected = GetParam().make();
    // Marks distinguish 16 stays of an entry, and the distances of lru2 have 11 bits.
    std::map<uint64_t, uint64_t> arrivals;
    for (uint64_t now = 1, most = 0; now < 2'000 && most < 15; ++now) {
      policy_time time = now << access_clock::tick_shift;
      // Some entries are requested much more often than others, and favourites change.
      uint64_t number = 1 + random() % (1 + random() % (3 * capacity)) + now / 500;
      entry_key key{number, number};
      bool told = random() % 2 == 0; // as one request, or as single events
      auto priority = static_cast<uint8_t>(told ? random() % 8 : 0);
      std::vector chain{key};
      request_number request = told ? tracker.begin_request(chain, {.retention = priority}, time) : 0;
      if (expected->has(number)) {
        expected->use(number, now, priority);
        if (!told)
          tracker.hit(0, key, time);
        continue;
      }
      if (expected->size() == capacity) {
        auto named = tracker.victims(0, {1, request}, time);
        ASSERT_EQ(named.size(), 1u);
        ASSERT_EQ(named[0].key.high, expected->evict()) << "at " << now << " of " << capacity;
        tracker.erase(0, named[0].key);
      }
      tracker.insert(0, {key, {}, 1}, time, request);
      expected->add(number, now, priority);
      most = std::max(most, ++arrivals[number]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, Reference, ::testing::ValuesIn(textbooks),
                         [](const auto& which) { return std::string(which.param.policy); });

TEST(References, ArePresentForEveryPolicy) {
  for (std::string_view policy : eviction_policy_names())
    EXPECT_TRUE(policy == "kmg" || // tests/policy/kmg_reference_test.cpp
                std::any_of(textbooks.begin(), textbooks.end(),
                            [&](const textbook& known) { return known.policy == policy; }))
        << policy;
}

} // namespace
} // namespace terrace::test
