// Loads whose client uses one pool while the next is copied.
#include "group_fixture.hpp"
#include "tests/support/counters.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using terrace::test::client_counters;

namespace {

using values = std::vector<uint32_t>;

/// Objects in turn are those of two pools. Every copy waits for the test.
struct LoadsByPool : group_fixture {
  LoadsByPool() { start({.host_objects = 16, .gated_copier = true, .window_objects = 4}); }

  void copy() {
    caf::anon_send(gate, open_gate{});
    settle();
  }
  void put(uint64_t first, size_t count) {
    auto stored = begin_store(first, count);
    settle();
    while (!*stored)
      copy();
    ASSERT_EQ((*stored)->failure.code, errc::ok) << (*stored)->failure.text;
  }
  box<load_result> begin(const lookup_answer& found, size_t count, context_ptr of = nullptr) {
    leased_chunks leased{found, 0, 2, client.first(2)};
    auto loaded = begin_load(0, count, std::move(of), nullptr, &leased);
    settle();
    return loaded;
  }

  client_counters client;
};

} // namespace

TEST_F(LoadsByPool, HaveAllOfAPoolBeforeAnythingOfTheNext) {
  put(0, 8);
  auto found = lookup(chain(0, 8), true);
  auto loaded = begin(found, 8);
  std::vector<values> seen;
  while (!*loaded) {
    seen.push_back(client.values(2));
    for (uint64_t n = 0; n < 8 && seen.back() == values{4, 0}; ++n)
      EXPECT_TRUE(n % 2 == 0 ? delivered(n) : untouched(n)) << n;
    copy();
  }
  seen.push_back(client.values(2));
  EXPECT_EQ(seen, (std::vector<values>{{0, 0}, {2, 0}, {4, 0}, {4, 2}, {4, 4}}))
      << "two windows of two chunks";
  EXPECT_EQ((*loaded)->failure.code, errc::ok) << (*loaded)->failure.text;
  EXPECT_EQ((*loaded)->chunks, 4u);
  EXPECT_EQ((*loaded)->bytes_by_tier[static_cast<size_t>(tier_kind::host)], 8 * payload);
  for (uint64_t n = 0; n < 8; ++n)
    EXPECT_TRUE(delivered(n)) << n;
  found = {};
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(LoadsByPool, CancelledBetweenPoolsHoldNothing) {
  put(0, 8);
  auto found = lookup(chain(0, 8), true);
  auto of = std::make_shared<request_context>();
  auto loaded = begin(found, 8, of);
  copy();
  copy();
  of->ended = errc::cancelled;
  while (!*loaded)
    copy();
  EXPECT_EQ((*loaded)->failure.code, errc::cancelled);
  EXPECT_EQ(client.values(2), (values{4, 0}));
  found = {};
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(LoadsByPool, OfChunksThatWereClearedAreGone) {
  put(0, 8);
  auto found = lookup(chain(0, 8), true);
  clear(group->host);
  auto loaded = begin(found, 8);
  while (!*loaded)
    copy();
  EXPECT_EQ((*loaded)->failure.code, errc::gone) << (*loaded)->failure.text;
  EXPECT_EQ(client.values(2), (values{0, 0}));
}
