#include "policy/open_requests.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace::test {
namespace {

/// A table and its history, which records accesses as a tracker does.
struct recorder {
  recorder() { history.start(); }

  static std::vector<entry_key> keys(uint64_t first, uint64_t count) {
    std::vector<entry_key> made;
    for (uint64_t n = first; n < first + count; ++n)
      made.push_back({n, n});
    return made;
  }
  void tick() { clock.advance(now += 5'000'000'000, true); }
  entry_index entry(entry_key key) {
    entry_index at = table.find(key);
    return at == no_entry ? table.add(key) : at;
  }
  void use(entry_index at) { history.use({&at, 1}, clock.stamp()); }

  void whole(const std::vector<entry_key>& chain) {
    tick();
    std::vector<entry_index> entries;
    size_t known = 0;
    for (size_t i = 0; i < chain.size(); ++i) {
      if (table.find(chain[i]) != no_entry)
        known = i + 1;
      entries.push_back(entry(chain[i]));
    }
    history.begin(entries, known, 0, 0);
    for (size_t i = entries.size(); i-- > 0;)
      use(entries[i]);
  }
  void find(long_request& request, std::span<const entry_key> chain, size_t step) const {
    for (size_t first = 0; first < chain.size(); first += step)
      request.find(table, chain.subspan(first, std::min(step, chain.size() - first)), true);
  }
  void record(long_request& request, std::span<const entry_key> chain, size_t step) {
    for (size_t i = chain.size(); i-- > 0;) {
      if ((chain.size() - 1 - i) % step == 0)
        request.go_on(history, table, clock.stamp());
      entry_index at = entry(chain[i]);
      request.mark(history, at);
      use(at);
    }
  }
  void in_parts(const std::vector<entry_key>& chain, size_t step) {
    tick();
    long_request request(1, {});
    find(request, chain, step);
    record(request, chain, step);
  }
  std::vector<uint32_t> words(const std::vector<entry_key>& of) const {
    std::vector<uint32_t> made;
    for (entry_key key : of)
      made.push_back(table[table.find(key)].history);
    return made;
  }

  entry_table table;
  access_clock clock;
  access_history history{table, clock};
  policy_time now = 0;
};

TEST(LongRequest, PartsAreRecordedAsTheWholeIs) {
  for (size_t step : {1, 3, 100}) {
    recorder whole, parts;
    for (uint64_t length : {4, 6, 5, 9}) { // a conversation, a shorter prompt, and a longer one
      auto chain = recorder::keys(1, length);
      whole.whole(chain);
      parts.in_parts(chain, step);
      EXPECT_EQ(parts.words(chain), whole.words(chain)) << "length " << length << ", step " << step;
    }
  }
}

TEST(LongRequest, WhatWasKnownMayBeForgottenBeforeItIsRecorded) {
  recorder fresh, parts;
  auto chain = recorder::keys(1, 4);
  parts.whole({chain[0]});
  fresh.tick();
  parts.tick();
  long_request request(1, {});
  parts.find(request, chain, 2);
  entry_index known = parts.table.find(chain[0]);
  parts.history.forget(known);
  parts.table.remove(known);
  parts.record(request, chain, 2);
  fresh.whole(chain);
  EXPECT_EQ(parts.words(chain), fresh.words(chain)) << "it continues nothing that is known";
}

TEST(LongRequest, MoreMayBeRecordedThanWasFound) {
  recorder parts;
  auto chain = recorder::keys(1, 3);
  parts.tick();
  long_request request(1, {});
  parts.find(request, std::span(chain).first(1), 1);
  parts.record(request, chain, 2);
  for (entry_key key : chain)
    EXPECT_EQ(parts.history.uses(parts.table.find(key)), 1u);
}

TEST(LongRequest, WhatIsNotRememberedDoesNotCount) {
  recorder parts;
  auto chain = recorder::keys(1, 3);
  parts.whole({chain[0]});
  long_request forgetful(1, {.retention = 200});
  forgetful.find(parts.table, chain, false);
  parts.tick();
  parts.record(forgetful, std::span(chain).first(1), 1);
  recorder alone;
  alone.whole({chain[0]});
  alone.whole({chain[0]});
  EXPECT_EQ(parts.words({chain[0]}), alone.words({chain[0]})) << "its chain has one entry";
  EXPECT_EQ(forgetful.retention(), 7) << "the highest there is";
  EXPECT_EQ(forgetful.number(), 1u);
}

} // namespace
} // namespace terrace::test
