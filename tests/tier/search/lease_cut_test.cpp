// Tests where a lease ends, and which of its objects it holds in host memory.
#include "tier/search/lease_cut.hpp"

#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace lease_cut_test {

constexpr uint64_t object = physical_bytes_for(1 << 20);

std::vector<object_place> places(const std::string& present) {
  std::vector<object_place> all;
  for (char each : present)
    all.push_back(each == '.' ? object_place{} : object_place{object_id{1}, 0, 1 << 20, object});
  return all;
}

/// Each character is an object; '.' is absent, '=' leased already.
struct cut {
  space_spec spec = terrace::test::small_space();
  std::string host, below;
  uint64_t room = 0; ///< objects

  template <class F>
  auto with(F&& f) const {
    auto here = places(host), there = places(below);
    leased_prefix prefix{spec, here, {}, {}, room * object};
    if (!below.empty())
      prefix.below.emplace_back(there);
    for (char each : host)
      prefix.leased.push_back(each == '=');
    return f(prefix);
  }

  size_t chunks() const {
    return with([](const leased_prefix& prefix) {
      size_t chunks = 0;
      find_chunks_that_fit(prefix, chunks).all();
      return chunks;
    });
  }
  std::string kept() const {
    return with([](const leased_prefix& prefix) {
      std::vector<bool> keeps;
      find_kept_in_host(prefix, keeps).all();
      std::string text;
      for (bool each : keeps)
        text += each ? '#' : '.';
      return text;
    });
  }
};

space_spec with_states(uint32_t trailing) {
  auto spec = terrace::test::small_space();
  spec.pools.push_back(
      {.name = "state", .object_bytes = 1 << 20, .rule = hit_rule::trailing_chunks, .trailing = trailing});
  return spec;
}

TEST(LeaseCut, EverythingThatFitsIsHeld) {
  cut all{.host = "####", .room = 4};
  EXPECT_EQ(all.chunks(), 4u);
  EXPECT_EQ(all.kept(), "####");
}

TEST(LeaseCut, WithoutATierBelowTheLeaseEndsWhereTheRoomDoes) {
  EXPECT_EQ((cut{.host = "####", .room = 3}.chunks()), 3u);
  EXPECT_EQ((cut{.host = "####", .room = 0}.chunks()), 0u);
}

TEST(LeaseCut, WhatIsLeasedAlreadyTakesNoRoom) {
  cut shared{.host = "====##", .room = 1};
  EXPECT_EQ(shared.chunks(), 5u);
}

TEST(LeaseCut, WhatDoesNotFitIsHeldBelow) {
  cut both{.host = "####", .below = "####", .room = 2};
  EXPECT_EQ(both.chunks(), 4u);
  EXPECT_EQ(both.kept(), "##..");
}

TEST(LeaseCut, BehindAGapOnlyWhatIsNotBelowIsHeldInHostMemory) {
  cut gap{.host = "##.###", .below = "#####.", .room = 6};
  EXPECT_EQ(gap.chunks(), 6u);
  EXPECT_EQ(gap.kept(), "##...#");
}

TEST(LeaseCut, EndsBeforeWhatWouldKeepTooMuchInHostMemory) {
  cut tail{.host = "..####", .below = "####..", .room = 4};
  EXPECT_EQ(tail.chunks(), 4u);
}

TEST(LeaseCut, WhatIsLeasedAlreadyCountsAsFoundBehindWhatWouldBeLoaded) {
  cut tail{.host = "..==", .below = "##..", .room = 0};
  EXPECT_EQ(tail.chunks(), 4u);
  tail.host = "..=#";
  EXPECT_EQ(tail.chunks(), 3u);
}

TEST(LeaseCut, RoomIsClaimedForWhatOnlyTiersBelowHold) {
  auto to_load = [](const leased_prefix& prefix) {
    uint64_t bytes = 0;
    find_bytes_to_load(prefix, bytes).all();
    return bytes;
  };
  EXPECT_EQ((cut{.host = "#.=..", .below = "####"}.with(to_load)), 2 * object);
  EXPECT_EQ((cut{.spec = with_states(1), .host = "#.....", .below = "######"}.with(to_load)), 2 * object)
      << "states are loaded as needed";
}

TEST(LeaseCut, EndsAtAWholeChunk) {
  auto spec = terrace::test::small_space();
  spec.world_size = 2;
  cut ranks{.spec = spec, .host = "######", .room = 3};
  EXPECT_EQ(ranks.chunks(), 1u);
}

TEST(LeaseCut, RoomForTheStatesIsSetAsideFirst) {
  // Each chunk has attention and a state, in turn; a prefix of any length needs one state.
  cut states{.spec = with_states(1), .host = "########", .room = 3};
  EXPECT_EQ(states.chunks(), 2u);
  states.host = "#.##"; // the rest of a prefix of two
  EXPECT_EQ(states.kept(), "#.##");
}

TEST(LeaseCut, StatesThatAreBelowNeedNoRoom) {
  cut states{.spec = with_states(1), .host = "########", .below = ".#.#.#.#", .room = 3};
  EXPECT_EQ(states.chunks(), 3u);
  states.host = "#.#.##";
  states.below = "....##";
  EXPECT_EQ(states.kept(), "#.#.#.");
}

TEST(LeaseCut, NothingIsLeasedIfTheStatesAloneAreTooMuch) {
  cut window{.spec = with_states(3), .host = "########", .room = 2};
  EXPECT_EQ(window.chunks(), 0u);
}

} // namespace lease_cut_test
