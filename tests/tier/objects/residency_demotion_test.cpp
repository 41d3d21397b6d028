// Objects on their way to a tier below: they are found, and a request that uses them keeps them.
#include "tests/tier/objects.hpp"
#include "tier/objects/residency.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace residency_demotion_test {

using ids = std::vector<object_id>;
using note_list = std::vector<std::pair<note_kind, entry_key>>;

entry_key name(uint64_t number) { return to_entry_key(key_of(number)); }

struct ResidencyDemotion : ::testing::Test {
  residency tier{tier_kind::host};
  uint64_t next_offset = 0;
  std::vector<entry_key> victims;

  ResidencyDemotion() {
    leaving().origins().keep();
    leaving().write_first();
  }
  object_departures& leaving() { return tier.departures(); }
  second_use& uses() { return leaving().uses(); }
  residency::clear_walk clear() {
    residency::clear_walk walk;
    EXPECT_FALSE(tier.clear_step(walk));
    return walk;
  }

  std::vector<object_place> store(uint64_t first, size_t count) {
    acquire_request request;
    request.objects = chain(first, count);
    auto wanted = tier.missing(request);
    std::vector<extent> granted;
    for (uint64_t size : wanted.sizes) {
      granted.push_back({next_offset, size});
      next_offset += size;
    }
    auto taken = tier.acquire(request, wanted, granted);
    tier.publish(taken.places, false);
    tier.take_notes();
    tier.take_evictable();
    return taken.places;
  }
  /// Makes victims in the order in which a policy names them.
  ids demote(const std::vector<uint64_t>& numbers) {
    for (uint64_t number : numbers)
      victims.push_back(name(number));
    auto begun = leaving().begin_demotion(victims);
    for (object_id id : begun)
      if (id != object_id{})
        leaving().begin_write({leaving().describe({id}).at(0).place});
    tier.take_notes();
    return begun;
  }
  object_state state_of(object_id id) const {
    const resident* object = tier.table().get(id);
    return object == nullptr ? object_state::free : object->state();
  }
  bool sees(uint64_t number) { return tier.probe({chain(number, 1), false, false}).hits == 1; }
  ids hold(uint64_t number) { return {tier.probe({chain(number, 1), true, false}).places.front().id}; }
  note_list notes() {
    note_list out;
    for (const policy_note& note : tier.take_notes().notes)
      out.emplace_back(note.kind, note.key);
    return out;
  }
};

TEST_F(ResidencyDemotion, VictimsAreFoundUntilTheyAreEvicted) {
  store(0, 3);
  auto begun = demote({2, 1});
  EXPECT_EQ(state_of(begun[0]), object_state::demoting);
  EXPECT_TRUE(sees(1));
  EXPECT_TRUE(sees(2));
  EXPECT_TRUE(tier.confirm(begun).at(0)) << "the write goes on";
  EXPECT_TRUE(leaving().offered({name(2)}).extents.empty()) << "nobody else evicts it";
  EXPECT_EQ(leaving().evict({name(2)}).refused, 1u);
  tier.take_notes();
  EXPECT_TRUE(tier.release(begun).empty());
  EXPECT_TRUE(notes().empty()) << "the policy knows of no hold";
  auto evicted = leaving().evict_demoted(victims, begun);
  EXPECT_EQ(evicted.freed.size(), 2u);
  EXPECT_EQ(evicted.refused, 0u);
  EXPECT_EQ(notes(), (note_list{{note_kind::evict, name(2)}, {note_kind::evict, name(1)}}));
  EXPECT_FALSE(sees(2));
  EXPECT_TRUE(sees(0));
}

TEST_F(ResidencyDemotion, DescribesWhatAnotherTierMustKnow) {
  auto places = store(0, 2);
  auto described = leaving().describe({places[1].id, object_id{}, places[0].id, object_id{12345}});
  ASSERT_EQ(described.size(), 2u);
  EXPECT_EQ(described[0].key, key_of(1));
  EXPECT_EQ(described[0].parent, name(0));
  EXPECT_EQ(described[0].place.offset, places[1].offset);
  EXPECT_TRUE(described[1].parent.empty());
}

TEST_F(ResidencyDemotion, WhatIsHeldMeanwhileStays) {
  store(0, 3);
  auto begun = demote({2, 1});
  auto held = hold(1);
  EXPECT_TRUE(notes().empty());
  tier.release(begun);
  auto evicted = leaving().evict_demoted(victims, begun);
  EXPECT_EQ(evicted.freed.size(), 1u);
  EXPECT_EQ(evicted.refused, 1u);
  EXPECT_TRUE(sees(1));
  EXPECT_EQ(notes(), (note_list{{note_kind::evict, name(2)}, {note_kind::pin, name(1)}}));
  tier.release(held);
  EXPECT_EQ(notes(), (note_list{{note_kind::unpin, name(1)}}));
  EXPECT_EQ(state_of(held[0]), object_state::published);
  EXPECT_TRUE(tier.take_evictable());
}

TEST_F(ResidencyDemotion, WhatWasHeldAndReleasedMeanwhileStaysToo) {
  store(0, 1);
  auto begun = demote({0});
  tier.release(hold(0));
  tier.take_notes();
  tier.release(begun);
  EXPECT_TRUE(notes().empty());
  EXPECT_TRUE(leaving().evict_demoted(victims, begun).freed.empty());
  EXPECT_TRUE(sees(0));
}

TEST_F(ResidencyDemotion, AnObjectThatContinuesThePrefixKeepsItsAncestors) {
  store(0, 3);
  auto begun = demote({2, 1});
  store(3, 1);
  EXPECT_EQ(state_of(begun[0]), object_state::published);
  EXPECT_EQ(state_of(begun[1]), object_state::published) << "the ancestor of an ancestor";
  tier.release(begun);
  EXPECT_TRUE(leaving().evict_demoted(victims, begun).freed.empty());
}

TEST_F(ResidencyDemotion, AnObjectStoredAnewUnderTheNameIsNotEvicted) {
  store(0, 1);
  auto begun = demote({0});
  EXPECT_TRUE(tier.discard(begun).freed.empty()) << "its memory is being read";
  auto anew = store(0, 1);
  EXPECT_EQ(tier.release(begun).size(), 1u) << "now it is free";
  tier.take_notes();
  auto evicted = leaving().evict_demoted(victims, begun);
  EXPECT_TRUE(evicted.freed.empty());
  EXPECT_EQ(evicted.refused, 1u);
  EXPECT_TRUE(notes().empty()) << "the policy may name it again";
  EXPECT_EQ(state_of(anew[0].id), object_state::published);
}

TEST_F(ResidencyDemotion, AClearFreesTheMemoryWhenTheWriteHasEnded) {
  store(0, 2);
  auto begun = demote({1});
  auto cleared = clear();
  EXPECT_EQ(cleared.objects, 2u);
  EXPECT_EQ(cleared.freed.size(), 1u);
  EXPECT_FALSE(sees(1));
  EXPECT_EQ(tier.release(begun).size(), 1u);
  EXPECT_EQ(leaving().evict_demoted(victims, begun).refused, 1u);
  EXPECT_EQ(tier.table().size(), 0u);
}

TEST_F(ResidencyDemotion, VictimsThatAreHeldOrGoneAreNotBegun) {
  store(0, 2);
  auto held = hold(0);
  victims = {name(0), name(1), name(7)};
  auto begun = leaving().begin_demotion(victims);
  EXPECT_EQ(begun[0], object_id{});
  EXPECT_NE(begun[1], object_id{});
  EXPECT_EQ(begun[2], object_id{});
  tier.release(held);
  tier.take_notes();
  auto evicted = leaving().evict_demoted(victims, begun);
  EXPECT_EQ(evicted.freed.size(), 1u) << "the first was not written, and may be now";
  EXPECT_EQ(evicted.refused, 2u);
  EXPECT_EQ(notes(), (note_list{{note_kind::evict, name(1)}, {note_kind::erase, name(7)}}));
}

TEST_F(ResidencyDemotion, MemoryThatIsStillReadIsKept) {
  store(0, 1);
  auto begun = demote({0});
  leaving().keep(begun);
  EXPECT_TRUE(notes().empty());
  EXPECT_TRUE(leaving().evict_demoted(victims, begun).freed.empty());
  EXPECT_EQ(notes(), (note_list{{note_kind::pin, name(0)}}));
  EXPECT_TRUE(tier.release(begun).empty());
  EXPECT_EQ(notes(), (note_list{{note_kind::unpin, name(0)}}));
  EXPECT_TRUE(tier.take_evictable());
  EXPECT_EQ(leaving().evict({name(0)}).freed.size(), 1u);
}

TEST_F(ResidencyDemotion, AVictimThatIsWrittenTwiceLeavesLater) {
  auto places = store(0, 1);
  auto begun = demote({0});
  leaving().begin_write(places);
  tier.release(begun);
  EXPECT_EQ(leaving().evict_demoted(victims, begun).refused, 1u);
  EXPECT_EQ(state_of(begun[0]), object_state::published);
  tier.take_notes();
  tier.release(begun);
  EXPECT_EQ(notes(), (note_list{{note_kind::unpin, name(0)}}));
  EXPECT_EQ(leaving().evict({name(0)}).freed.size(), 1u);
}

TEST_F(ResidencyDemotion, WritesOfOtherObjectsHoldThem) {
  auto places = store(0, 1);
  leaving().begin_write({places[0]});
  EXPECT_TRUE(leaving().offered({name(0)}).extents.empty());
  tier.release({places[0].id});
  EXPECT_EQ(leaving().offered({name(0)}).extents.size(), 1u);
}

TEST_F(ResidencyDemotion, WhatTheOtherRoundWritesIsNamedAgainIfItStays) {
  store(0, 1);
  auto begun = demote({0});
  EXPECT_EQ(leaving().evict({name(0)}).refused, 1u);
  EXPECT_EQ(notes(), (note_list{{note_kind::pin, name(0)}}));
  tier.release(begun);
  leaving().keep(begun);
  EXPECT_EQ(notes(), (note_list{{note_kind::unpin, name(0)}}));
}

TEST_F(ResidencyDemotion, WhatLeavesWithItsSegmentIsWrittenFirst) {
  auto places = store(0, 3);
  auto held = hold(0);
  tier.take_notes();
  leaving().retire({0, next_offset});
  EXPECT_TRUE(leaving().take_left().empty());
  auto due = leaving().take_leaving();
  EXPECT_EQ(due, (ids{places[1].id, places[2].id}));
  EXPECT_EQ(state_of(due[0]), object_state::demoting);
  leaving().leave_now(due);
  EXPECT_EQ(leaving().take_left().size(), 2u);
  tier.release(held);
  EXPECT_EQ(leaving().take_leaving(), held) << "with its last hold";
  auto again = hold(0);
  leaving().leave_now(held);
  EXPECT_TRUE(leaving().take_left().empty()) << "somebody uses it";
  tier.release(again);
  EXPECT_EQ(leaving().take_leaving(), held);
  leaving().leave_now(held);
  EXPECT_EQ(leaving().take_left().size(), 1u);
  EXPECT_EQ(tier.table().size(), 0u);
}

TEST_F(ResidencyDemotion, AVictimThatIsKeptInASegmentBeingRemovedLeavesAllTheSame) {
  store(0, 1);
  victims = {name(0)};
  auto begun = leaving().begin_demotion(victims);
  leaving().retire({0, next_offset});
  EXPECT_TRUE(leaving().take_leaving().empty()) << "the round evicts it";
  leaving().keep(begun); // it does not
  EXPECT_EQ(leaving().take_leaving(), begun);
  leaving().leave_now(begun);
  EXPECT_EQ(leaving().take_left().size(), 1u);
}

TEST_F(ResidencyDemotion, AWalkVisitsAllThatIsPublished) {
  auto places = store(0, 5);
  acquire_request request; // and one that is being written
  request.objects = chain(9, 1);
  tier.acquire(request, tier.missing(request), {{next_offset, 8192}});
  uint32_t next = 0;
  EXPECT_EQ(leaving().published_from(next, 3).size(), 3u);
  EXPECT_EQ(leaving().published_from(next, 3), (ids{places[3].id, places[4].id}));
  EXPECT_TRUE(leaving().published_from(next, 3).empty());
}

TEST_F(ResidencyDemotion, SecondUsesAreToldOnce) {
  auto places = store(0, 2);
  tier.probe({chain(0, 2), false, true}); // before anybody watches
  uses().watch();
  EXPECT_TRUE(uses().take().empty());
  tier.probe({chain(0, 2), false, false});
  EXPECT_TRUE(uses().take().empty()) << "a look is no use";
  tier.probe({chain(0, 2), false, true});
  EXPECT_EQ(uses().take(), (ids{places[0].id, places[1].id}));
  tier.use({{places[0].id, places[1].id}});
  acquire_request request;
  request.objects = chain(0, 2);
  tier.acquire(request, {}, {});
  EXPECT_TRUE(uses().take().empty());
  uses().forget({places[1].id});
  tier.use({{places[0].id, places[1].id}});
  EXPECT_EQ(uses().take(), ids{places[1].id});
  EXPECT_EQ(uses().used_twice({places[1].id, object_id{}, places[0].id}), (ids{places[1].id, places[0].id}));
}

TEST_F(ResidencyDemotion, WhatWasNotUsedIsNotAmongTheUsed) {
  auto places = store(0, 3);
  uses().watch();
  tier.use({{places[1].id}});
  EXPECT_TRUE(uses().used_twice({places[1].id}).empty()) << "not before it is taken";
  uses().take();
  EXPECT_EQ(uses().used_twice({places[2].id, places[1].id, places[0].id}), ids{places[1].id});
}

} // namespace residency_demotion_test
