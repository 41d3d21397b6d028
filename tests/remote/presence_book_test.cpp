// What is believed of a store: answers age, failures pause for longer and longer, and the book never grows.
#include "remote/presence_book.hpp"

#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

namespace terrace::remote {
namespace presence_book_test {

using namespace std::chrono_literals;
using time_point = presence_book::time_point;

const time_point start{std::chrono::hours(1)};

std::string key(int i) { return "t1/space/epoch/0.0/" + std::to_string(i); }

TEST(PresenceBook, KnowsNothingAtFirst) {
  presence_book book;
  EXPECT_EQ(book.of(key(1), start), belief::unknown);
  EXPECT_EQ(book.bytes(), 16u << 20);
}

TEST(PresenceBook, AnswersAge) {
  presence_book book({.present_for = 10s, .absent_for = 2s});
  book.is_present(key(1), start);
  book.is_absent(key(2), start);
  EXPECT_EQ(book.of(key(1), start + 9'900ms), belief::present);
  EXPECT_EQ(book.of(key(1), start + 10s), belief::unknown);
  EXPECT_EQ(book.of(key(2), start + 1'900ms), belief::absent);
  EXPECT_EQ(book.of(key(2), start + 2s), belief::unknown);
}

TEST(PresenceBook, TheLastAnswerHolds) {
  presence_book book;
  book.is_absent(key(1), start);
  book.is_present(key(1), start);
  EXPECT_EQ(book.of(key(1), start), belief::present);
  book.is_absent(key(1), start);
  EXPECT_EQ(book.of(key(1), start), belief::absent);
}

TEST(PresenceBook, AFailedKeyIsLeftAloneForLongerAndLonger) {
  presence_book book({.first_pause = 5s, .longest_pause = 60s});
  auto now = start;
  for (auto pause : {5s, 10s, 20s, 40s, 60s, 60s}) {
    book.has_failed(key(1), now);
    EXPECT_EQ(book.of(key(1), now + pause - 100ms), belief::failed);
    EXPECT_EQ(book.of(key(1), now + pause), belief::unknown) << pause.count();
    now += pause;
  }
}

TEST(PresenceBook, AFailureForEverPausesNoLongerThanTheLongest) {
  presence_book book;
  for (int i = 0; i < 1000; ++i)
    book.has_failed(key(1), start);
  EXPECT_EQ(book.of(key(1), start + 59'900ms), belief::failed);
  EXPECT_EQ(book.of(key(1), start + 60s), belief::unknown);
}

TEST(PresenceBook, AGoodAnswerEndsTheFailures) {
  presence_book book({.first_pause = 5s});
  book.has_failed(key(1), start);
  book.has_failed(key(1), start);
  book.is_present(key(1), start);
  book.has_failed(key(1), start);
  EXPECT_EQ(book.of(key(1), start + 5s), belief::unknown) << "the first pause again";
}

TEST(PresenceBook, ForgetsOneKeyOrAll) {
  presence_book book;
  book.is_present(key(1), start);
  book.is_present(key(2), start);
  book.forget(key(1));
  book.forget(key(3)); // never known
  EXPECT_EQ(book.of(key(1), start), belief::unknown);
  EXPECT_EQ(book.of(key(2), start), belief::present);
  book.forget_all();
  EXPECT_EQ(book.of(key(2), start), belief::unknown);
}

TEST(PresenceBook, ANewKeyReplacesTheOldestOfItsGroup) {
  presence_book book({.keys_max = 8}); // one group
  EXPECT_EQ(book.capacity(), 8u);
  for (int i = 0; i < 8; ++i)
    book.is_present(key(i), start + i * 100ms);
  book.is_present(key(0), start + 1s); // heard of again
  book.is_present(key(8), start + 1s);
  EXPECT_EQ(book.of(key(1), start + 1s), belief::unknown);
  for (int i : {0, 2, 3, 4, 5, 6, 7, 8})
    EXPECT_EQ(book.of(key(i), start + 1s), belief::present) << i;
  book.forget(key(5));
  book.is_present(key(9), start + 2s);
  EXPECT_EQ(book.of(key(2), start + 2s), belief::present) << "the free place was taken";
}

TEST(PresenceBook, NeverTellsWhatWasNotSaid) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  presence_book book({.keys_max = 64});
  std::map<int, belief> said;
  auto now = start;
  size_t known = 0;
  for (int step = 0; step < 20'000; ++step) {
    int i = static_cast<int>(random() % 100);
    now += std::chrono::milliseconds(random() % 3);
    switch (random() % 5) {
      case 0: book.is_present(key(i), now), said[i] = belief::present; break;
      case 1: book.is_absent(key(i), now), said[i] = belief::absent; break;
      case 2: book.has_failed(key(i), now), said[i] = belief::failed; break;
      case 3: book.forget(key(i)), said[i] = belief::unknown; break;
      default: break;
    }
    auto believed = book.of(key(i), now);
    EXPECT_TRUE(believed == belief::unknown || believed == said[i]);
    known += believed != belief::unknown;
  }
  EXPECT_GT(known, 5'000u);
}

// ---- how much of a chain is there ----

struct probed {
  size_t found = 0, missing = 0, requests = 0, rounds = 0;
};

template <class Has>
probed probe(size_t chunks, const Has& has) {
  prefix_probe plan(chunks);
  probed done;
  for (auto asked = plan.next(); !asked.empty(); asked = plan.next()) {
    EXPECT_TRUE(std::ranges::is_sorted(asked, std::less_equal{}) || asked.size() == 1) << "each once";
    std::vector<belief> what;
    for (size_t chunk : asked) {
      EXPECT_TRUE(plan.found() <= chunk && chunk < plan.missing()) << "what is known is not asked for";
      what.push_back(has(chunk));
    }
    plan.answered(what);
    done.requests += asked.size();
    ++done.rounds;
  }
  done.found = plan.found();
  done.missing = plan.missing();
  return done;
}
/// The store has the first `there`.
probed probe_first(size_t there, size_t chunks) {
  return probe(chunks, [there](size_t chunk) { return chunk < there ? belief::present : belief::absent; });
}

TEST(PrefixProbe, FindsEveryLength) {
  for (size_t chunks = 0; chunks <= 300; ++chunks)
    for (size_t there = 0; there <= chunks; ++there) {
      const auto done = probe_first(there, chunks);
      ASSERT_EQ(done.found, there) << "of " << chunks;
      ASSERT_EQ(done.missing, there) << "of " << chunks;
    }
}

TEST(PrefixProbe, TakesFewRoundsAndRequests) {
  EXPECT_EQ(probe_first(0, 0).rounds, 0U);
  for (auto [there, requests, rounds] : std::vector<std::array<size_t, 3>>{
           {0, 11, 1}, {1, 11, 1}, {10, 18, 2}, {100, 43, 3}, {600, 56, 3}, {999, 57, 3}, {1'000, 11, 1}}) {
    SCOPED_TRACE(there);
    const auto done = probe_first(there, 1'000);
    EXPECT_EQ(done.requests, requests);
    EXPECT_EQ(done.rounds, rounds);
  }
  for (size_t there = 0; there <= 10'000; there += 7) {
    const auto done = probe_first(there, 10'000);
    EXPECT_LE(done.requests, 80U) << there;
    EXPECT_LE(done.rounds, 4U) << there;
  }
}

/// A chunk without one before it is found by nobody; one that was not asked for is believed to be there.
TEST(PrefixProbe, EndsAtTheFirstChunkThatIsKnownToBeMissing) {
  const auto has_not = [](size_t missing) {
    return [missing](size_t chunk) { return chunk == missing ? belief::absent : belief::present; };
  };
  EXPECT_EQ(probe(1'000, has_not(7)).found, 7U) << "it was asked for";
  EXPECT_EQ(probe(1'000, has_not(8)).found, 1'000U) << "it was not";
  EXPECT_EQ(probe(1'000, [](size_t chunk) { return chunk == 3 ? belief::failed : belief::present; }).found,
            3U)
      << "its read has failed";
}

TEST(PrefixProbe, WhatIsKnownToBeMissingOtherwiseEndsItThere) {
  prefix_probe plan(1'000);
  plan.answered(std::vector(plan.next().size(), belief::present));
  EXPECT_EQ(plan.found(), 1'000U);
  plan.is_missing(8);
  EXPECT_EQ(plan.found(), 8U);
  EXPECT_EQ(plan.missing(), 8U);
  EXPECT_TRUE(plan.next().empty());
}

TEST(PrefixProbe, WhatIsNotAnsweredEndsIt) {
  const auto done =
      probe(1'000, [](size_t chunk) { return chunk < 100 ? belief::present : belief::unknown; });
  EXPECT_EQ(done.rounds, 1U);
  EXPECT_EQ(done.found, 64U);
  EXPECT_EQ(done.missing, 1'000U) << "nothing is known to be missing";
}

} // namespace presence_book_test
} // namespace terrace::remote
