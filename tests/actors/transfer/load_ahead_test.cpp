// Loads under a lease read several windows at a time, over a simulated ring.
#include "disk_fixture.hpp"

#include <cerrno>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using runtime::io_code;

namespace {

struct LoadsAhead : disk_fixture {
  LoadsAhead() { start({.host_objects = 16, .disk_objects = 85, .window_objects = 8}); }

  box<load_result> begin_leased(const lookup_answer& found, size_t count, context_ptr of = nullptr) {
    leased_chunks leased{found, 0};
    return begin_load(0, count, std::move(of), nullptr, &leased);
  }
  void expect_all(const box<load_result>& loaded, size_t count) {
    ASSERT_TRUE(*loaded) << "the load was not answered";
    EXPECT_EQ((*loaded)->failure.code, errc::ok) << (*loaded)->failure.text;
    EXPECT_EQ((*loaded)->chunks, count);
    EXPECT_EQ((*loaded)->bytes_by_tier[static_cast<size_t>(tier_kind::disk)], count * payload);
    for (uint64_t n = 0; n < count; ++n)
      EXPECT_TRUE(delivered(n)) << n;
  }
};

} // namespace

TEST_F(LoadsAhead, ManyWindowsAreReadAtATime) {
  on_disk(0, 12);
  auto found = lookup(chain(0, 12), true);
  ring.hold(io_code::read);
  auto loaded = begin_leased(found, 12);
  settle();
  EXPECT_EQ(ring.in_flight(io_code::read), 8u);
  ring.release(io_code::read);
  settle();
  expect_all(loaded, 12);
}

TEST_F(LoadsAhead, HostMemoryIsAskedOnceForWhatTheLeaseHoldsBelow) {
  on_disk(0, 1);
  auto found = lookup(chain(0, 1), true);
  auto loaded = begin_leased(found, 1);
  EXPECT_LE(settle(), 26u) << "its messages, completions of the ring, and three jobs of the test's own actor";
  expect_all(loaded, 1);
}

TEST_F(LoadsAhead, WithoutALeaseOneIsReadAfterTheOther) { // behind a gap nothing would be delivered
  on_disk(1, 11);
  EXPECT_EQ(load(0, 12).chunks, 0u);
  EXPECT_EQ(present(group->host, 0, 12), 0u);
}

TEST_F(LoadsAhead, ThoseAheadGiveWayWhenMemoryIsShort) {
  on_disk(0, 8);
  auto found = lookup(chain(0, 8), true);
  store(100, 16);
  auto others = hold(group->host, 100, 13); // room for three windows
  auto loaded = begin_leased(found, 8);
  settle();
  expect_all(loaded, 8);
  EXPECT_EQ(report(group->host).waiting, 0u);
  EXPECT_EQ(probes.host->dropped(), 0u);
  EXPECT_EQ(probes.host->refused(refusal_reason::no_room), 0u) << "they come again";
}

TEST_F(LoadsAhead, TheFirstWaitsForMemoryAndHoldsNone) {
  on_disk(0, 8);
  auto found = lookup(chain(0, 8), true);
  store(100, 16);
  auto others = hold(group->host, 100, 16);
  ASSERT_TRUE(others);
  auto held = report(group->host).held_objects;
  auto loaded = begin_leased(found, 8);
  settle();
  EXPECT_FALSE(*loaded);
  EXPECT_EQ(report(group->host).waiting, 1u);
  EXPECT_EQ(report(group->host).held_objects, held);
  others.reset();
  settle();
  expect_all(loaded, 8);
}

TEST_F(LoadsAhead, EndingEarlyLeavesNothingHeld) {
  on_disk(0, 8);
  auto found = lookup(chain(0, 8), true);
  ring.hold(io_code::read);
  auto of = std::make_shared<request_context>();
  auto loaded = begin_leased(found, 8, of);
  settle();
  of->ended = errc::cancelled;
  caf::anon_send(group->host, sweep_notice{});
  caf::anon_send(disk_tier(), sweep_notice{});
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->failure.code, errc::cancelled);
  found = {};
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(report(disk_tier()).held_objects, 0u);
  EXPECT_EQ(host_used(), present(group->host, 0, 8) * physical) << "reserved space has been given back";
}

TEST_F(LoadsAhead, AReadErrorDeliversWhatIsBeforeIt) {
  on_disk(0, 8);
  auto found = lookup(chain(0, 8), true);
  ring.fail_next(io_code::read, EIO);
  auto loaded = begin_leased(found, 8);
  settle();
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->failure.code, errc::ok) << (*loaded)->failure.text;
  EXPECT_LT((*loaded)->chunks, 8u);
  EXPECT_TRUE((*loaded)->damaged);
  found = {};
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
}
