#include "tier/objects/residency.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <optional>

using namespace terrace;
using namespace terrace::test;

namespace residency_test {

/// A tier whose allocator hands out one extent after the other.
struct Residency : ::testing::Test {
  residency tier{tier_kind::host};
  uint64_t next_offset = 0;

  std::vector<extent> extents_for(const residency::need& wanted) {
    std::vector<extent> out;
    for (uint64_t size : wanted.sizes) {
      out.push_back({next_offset, size});
      next_offset += size;
    }
    return out;
  }
  residency::acquired acquire(const batch_ptr& objects, bool note_access = true) {
    acquire_request request;
    request.objects = objects;
    request.note_access = note_access;
    auto wanted = tier.missing(request);
    return tier.acquire(request, wanted, extents_for(wanted));
  }
  std::vector<object_place> published(const batch_ptr& objects) {
    auto acquired = acquire(objects);
    tier.publish(acquired.places, false);
    tier.take_notes();
    tier.take_evictable();
    return acquired.places;
  }
  std::vector<std::pair<note_kind, entry_key>> notes() {
    std::vector<std::pair<note_kind, entry_key>> out;
    for (const policy_note& note : tier.take_notes().notes)
      out.emplace_back(note.kind, note.key);
    return out;
  }
  bool sees(uint64_t number) { return tier.probe({chain(number, 1), false, false}).hits == 1; }
};

entry_key name(uint64_t number) { return to_entry_key(key_of(number)); }
using note_list = std::vector<std::pair<note_kind, entry_key>>;

TEST_F(Residency, ReservedObjectsAreInvisibleUntilTheyArePublished) {
  auto acquired = acquire(chain(0, 2));
  EXPECT_EQ(acquired.states, (std::vector{acquired_state::reserved, acquired_state::reserved}));
  EXPECT_FALSE(sees(0));
  EXPECT_TRUE(notes().empty()); // the policy is not told of them, either
  tier.publish(acquired.places, false);
  EXPECT_TRUE(sees(0));
  EXPECT_TRUE(sees(1));
}

TEST_F(Residency, TellsSubscribersOfAChainFromItsBeginning) {
  auto log = std::make_shared<event_log>();
  log->begin();
  tier.events().record_for(log);
  auto all = chain(0, 3);
  published(all);
  auto events = tier.events().take();
  ASSERT_EQ(events.size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(events[i].key, all->keys[i]);
}

TEST_F(Residency, RemembersWhyObjectsHaveLeft) {
  auto log = std::make_shared<event_log>(); // nobody has subscribed
  tier.events().record_for(log);
  auto why = [&](uint64_t number) {
    auto left = log->departures().find(name(number));
    return left ? std::string(to_string(left->why)) : "present";
  };
  auto places = published(chain(0, 6));
  tier.departures().evict({name(0)});
  tier.discard({places[1].id}, discard_reason::damaged);
  tier.discard({places[2].id}, discard_reason::unwanted);
  tier.discard({places[3].id}, discard_reason::unusable);
  EXPECT_EQ(why(4), "present");
  tier.departures().retire({places[4].offset, places[4].physical_bytes});
  residency::clear_walk clear;
  while (tier.clear_step(clear)) {
  }
  std::vector<std::string> all;
  for (uint64_t number = 0; number < 6; ++number)
    all.push_back(why(number));
  EXPECT_EQ(all,
            (std::vector<std::string>{"evicted", "damaged", "removed", "incomplete", "retired", "cleared"}));
  EXPECT_EQ(log->departures().find(name(0))->from, tier_kind::host);
}

TEST_F(Residency, AsksForWholeExtentsOfWhatIsMissingOnly) {
  published(chain(0, 1));
  acquire_request request;
  request.objects = chain(0, 3, 5000);
  auto wanted = tier.missing(request);
  EXPECT_EQ(wanted.objects, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(wanted.sizes, (std::vector<uint64_t>(2, physical_bytes_for(5000))));
}

TEST_F(Residency, ReservesOnlyWhatMayBeFilled) {
  acquire_request request;
  request.objects = chain(0, 3);
  request.may_fill = {false, true, false};
  EXPECT_EQ(tier.missing(request).objects, (std::vector<size_t>{1}));
  request.fill = false;
  EXPECT_TRUE(tier.missing(request).objects.empty());
}

TEST_F(Residency, HoldsWhatIsThereAndReservesTheRest) {
  published(chain(0, 2));
  auto acquired = acquire(chain(0, 3));
  EXPECT_EQ(acquired.states,
            (std::vector{acquired_state::held, acquired_state::held, acquired_state::reserved}));
  EXPECT_TRUE(acquired.held[0].present());
  EXPECT_TRUE(acquired.held[1].present());
  EXPECT_FALSE(acquired.held[2].present());
  EXPECT_EQ(acquired.reserved.size(), 1u);
  EXPECT_EQ(tier.table().totals().held.objects, 2u);
}

TEST_F(Residency, TellsWhatSomebodyElseIsWriting) {
  acquire(chain(0, 1));
  auto second = acquire(chain(0, 2));
  EXPECT_EQ(second.states[0], acquired_state::pending);
  EXPECT_FALSE(second.places[0].present());
  EXPECT_EQ(second.states[1], acquired_state::reserved);
}

TEST_F(Residency, GivesBackExtentsForWhatOthersBroughtWhileItWaited) {
  acquire_request request;
  request.objects = chain(0, 2);
  auto wanted = tier.missing(request);
  auto granted = extents_for(wanted);
  published(chain(0, 1)); // while the allocator was asked
  acquire(chain(1, 1));   // and this one is being written
  auto acquired = tier.acquire(request, wanted, granted);
  EXPECT_EQ(acquired.states, (std::vector{acquired_state::held, acquired_state::pending}));
  EXPECT_EQ(acquired.unused, granted);
  EXPECT_TRUE(acquired.reserved.empty());
}

TEST_F(Residency, ABatchThatNamesAnObjectTwiceReservesItOnce) {
  auto twice = std::make_shared<object_batch>(*chain(0, 1));
  twice->keys.push_back(twice->keys[0]);
  twice->parents.push_back(twice->parents[0]);
  twice->payload_bytes.push_back(twice->payload_bytes[0]);
  auto acquired = acquire(twice);
  EXPECT_EQ(acquired.reserved.size(), 1u);
  EXPECT_EQ(acquired.unused.size(), 1u);
  EXPECT_EQ(tier.table().size(), 1u);
}

TEST_F(Residency, PublishingSkipsWhatIsNotReservedAnyMore) {
  auto acquired = acquire(chain(0, 2));
  tier.abandon({acquired.places[0].id});
  auto places = tier.publish({acquired.places[0], acquired.places[1], object_place{}}, true);
  EXPECT_FALSE(places[0].present());
  EXPECT_TRUE(places[1].present());
  EXPECT_FALSE(places[2].present());
  EXPECT_FALSE(sees(0));
  tier.take_notes();
  auto again = tier.publish(acquired.places, true);
  EXPECT_FALSE(again[1].present()); // once only
  EXPECT_TRUE(notes().empty());
}

TEST_F(Residency, AbandonedSpaceComesBackAndPublishedSpaceDoesNot) {
  auto acquired = acquire(chain(0, 2));
  tier.publish({acquired.places[0]}, false);
  auto freed = tier.abandon(acquired.reserved);
  ASSERT_EQ(freed.size(), 1u);
  EXPECT_EQ(freed[0].offset, acquired.places[1].offset);
  EXPECT_EQ(freed[0].size, physical_bytes_for(4096));
  EXPECT_TRUE(sees(0));
  EXPECT_EQ(tier.table().size(), 1u);
}

TEST_F(Residency, ThePolicyHearsUseLastChunkFirst) {
  published(chain(0, 3));
  tier.probe({chain(0, 3), false, true});
  EXPECT_EQ(notes(),
            (note_list{{note_kind::hit, name(2)}, {note_kind::hit, name(1)}, {note_kind::hit, name(0)}}));
}

/// The notes of uses: the last object of each run, and the number of its objects.
std::vector<std::pair<entry_key, uint32_t>> runs(residency& tier) {
  std::vector<std::pair<entry_key, uint32_t>> all;
  for (const policy_note& note : tier.take_notes().notes)
    if (note.kind == note_kind::hit)
      all.emplace_back(note.key, note.entries);
  return all;
}

TEST_F(Residency, ThePolicyHearsOfARunOfAChainByOneNote) {
  auto places = published(chain(0, 8));
  tier.probe({.objects = chain(0, 8), .note_access = true, .chains = 1});
  EXPECT_EQ(runs(tier), (std::vector{std::pair{name(7), 8U}}));
  tier.probe({.objects = chain(0, 8), .note_access = true, .range = {2, 4}, .chains = 1});
  EXPECT_EQ(runs(tier), (std::vector{std::pair{name(5), 4U}}));
  tier.discard({places[3].id});
  tier.take_notes();
  tier.probe({.objects = chain(0, 10), .note_access = true, .chains = 1});
  EXPECT_EQ(runs(tier), (std::vector{std::pair{name(7), 4U}, std::pair{name(2), 3U}})) << "3 is gone";
  std::vector<object_id> ids;
  for (const object_place& place : places)
    ids.push_back(place.id);
  ids[5] = {}; // is not accessed
  tier.use({ids, 1});
  EXPECT_EQ(runs(tier),
            (std::vector{std::pair{name(7), 2U}, std::pair{name(4), 1U}, std::pair{name(2), 3U}}));
}

TEST_F(Residency, RunsAreThoseOfEachPoolAndRank) {
  auto batch = std::make_shared<object_batch>();
  for (uint64_t n = 0; n < 3; ++n)
    for (uint16_t rank : {uint16_t{0}, uint16_t{1}}) {
      batch->keys.push_back(key_of(n));
      batch->keys.back().rank = rank;
      batch->parents.push_back({});
      batch->payload_bytes.push_back(4096);
    }
  published(batch);
  tier.probe({.objects = batch, .note_access = true, .chains = 2});
  EXPECT_EQ(runs(tier), (std::vector{std::pair{to_entry_key(batch->keys[4]), 3U},
                                     std::pair{to_entry_key(batch->keys[5]), 3U}}));
  tier.probe({.objects = batch, .note_access = true, .range = {3, 3}, .chains = 2});
  EXPECT_EQ(runs(tier), (std::vector{std::pair{to_entry_key(batch->keys[5]), 2U},
                                     std::pair{to_entry_key(batch->keys[4]), 1U}}));
}

TEST_F(Residency, ALongRunHasSeveralNotes) {
  constexpr uint32_t most = policy_note::entries_max;
  published(chain(0, 2 * most + 1));
  tier.probe({.objects = chain(0, 2 * most + 1), .note_access = true, .chains = 1});
  EXPECT_EQ(runs(tier), (std::vector{std::pair{name(2 * most), most}, std::pair{name(most), most},
                                     std::pair{name(0), 1U}}));
}

TEST_F(Residency, ABareProbeIsNotAUse) {
  published(chain(0, 3));
  EXPECT_EQ(tier.probe({chain(0, 4), false, false}).hits, 3u);
  EXPECT_TRUE(notes().empty());
}

TEST_F(Residency, ThePolicyHearsOfAHoldIfItNamesTheObject) {
  auto places = published(chain(0, 1));
  tier.probe({chain(0, 1), true, false});
  tier.probe({chain(0, 1), true, false});
  EXPECT_TRUE(notes().empty());
  const victim_answer named{.victims = {name(0)}, .above = {entry_key{}}, .bytes = 4096};
  auto left = named;
  EXPECT_TRUE(tier.departures().keep_held(left));
  EXPECT_TRUE(left.victims.empty());
  EXPECT_EQ(notes(), (note_list{{note_kind::pin, name(0)}}));
  left = named;
  EXPECT_TRUE(tier.departures().keep_held(left));
  EXPECT_TRUE(notes().empty()) << "once";
  tier.release({places[0].id});
  EXPECT_TRUE(notes().empty());
  EXPECT_FALSE(tier.take_evictable());
  tier.release({places[0].id});
  EXPECT_EQ(notes(), (note_list{{note_kind::unpin, name(0)}}));
  EXPECT_TRUE(tier.take_evictable());
  left = named;
  EXPECT_FALSE(tier.departures().keep_held(left));
  EXPECT_EQ(left.victims, named.victims);
  tier.probe({chain(0, 1), true, false});
  tier.release({places[0].id});
  EXPECT_TRUE(notes().empty()) << "it was not named meanwhile";
}

TEST_F(Residency, WhatAHeldObjectContinuesStays) {
  published(chain(0, 3));
  published(chain(10, 1));
  tier.probe({chain(2, 1), true, false});
  tier.take_notes();
  victim_answer named{.victims = {name(2), name(10), name(1), name(0)},
                      .above = {name(1), entry_key{}, name(0), entry_key{}},
                      .bytes = 4 * 4096};
  EXPECT_TRUE(tier.departures().keep_held(named));
  EXPECT_EQ(named.victims, std::vector{name(10)});
  EXPECT_EQ(named.above, std::vector{entry_key{}});
  EXPECT_EQ(notes(), (note_list{{note_kind::pin, name(2)}})) << "the policy knows what it continues";
}

TEST_F(Residency, PublishingAndHoldingIsAnInsert) {
  auto acquired = acquire(chain(0, 1));
  tier.publish(acquired.places, true);
  EXPECT_EQ(notes(), (note_list{{note_kind::insert, name(0)}}));
  EXPECT_FALSE(tier.take_evictable());
}

TEST_F(Residency, NotesNameTheTierAndTheObjectsBytesAndParent) {
  auto acquired = acquire(chain(1, 1));
  tier.publish(acquired.places, false);
  auto taken = tier.take_notes();
  EXPECT_EQ(taken.tier, tier_kind::host);
  ASSERT_EQ(taken.notes.size(), 1u);
  EXPECT_EQ(taken.notes[0].parent, name(0));
  EXPECT_EQ(taken.notes[0].bytes, physical_bytes_for(4096));
  EXPECT_TRUE(tier.take_evictable());
}

TEST_F(Residency, EvictsWhatMayLeaveAndRefusesTheRest) {
  auto places = published(chain(0, 2));
  acquire(chain(2, 1)); // reserved
  tier.probe({chain(0, 1), true, false});
  tier.take_notes();
  auto evicted = tier.departures().evict({name(0), name(1), name(2), name(3)});
  EXPECT_EQ(evicted.refused, 3u); // held, being written, unknown
  ASSERT_EQ(evicted.freed.size(), 1u);
  EXPECT_EQ(evicted.freed[0].offset, places[1].offset);
  // Refused victims must not be named again and again.
  EXPECT_EQ(notes(), (note_list{{note_kind::pin, name(0)},
                                {note_kind::evict, name(1)},
                                {note_kind::erase, name(2)},
                                {note_kind::erase, name(3)}}));
  EXPECT_EQ(tier.departures().evictions, 1u);
  EXPECT_TRUE(sees(0));
  EXPECT_FALSE(sees(1));
}

TEST_F(Residency, ADiscardedObjectIsNotFoundAgainAndItsSpaceWaitsForItsReaders) {
  auto places = published(chain(0, 1));
  tier.probe({chain(0, 1), true, false});
  tier.take_notes();
  EXPECT_TRUE(tier.discard({places[0].id}).freed.empty());
  EXPECT_FALSE(sees(0));
  EXPECT_EQ(notes(), (note_list{{note_kind::erase, name(0)}}));
  EXPECT_TRUE(tier.discard({places[0].id}).freed.empty()); // a second finder changes nothing
  auto freed = tier.release({places[0].id});
  ASSERT_EQ(freed.size(), 1u);
  EXPECT_EQ(freed[0].offset, places[0].offset);
  EXPECT_TRUE(notes().empty()); // the policy forgot the object long ago
  EXPECT_EQ(tier.table().size(), 0u);
  EXPECT_EQ(tier.discarded, 1u);
}

TEST_F(Residency, ADiscardedObjectThatNobodyReadsIsFreeAtOnce) {
  auto places = published(chain(0, 1));
  EXPECT_EQ(tier.discard({places[0].id}).freed.size(), 1u);
  EXPECT_EQ(tier.table().size(), 0u);
}

TEST_F(Residency, ADiscardedObjectMayBeStoredAnewWhileTheOldOneIsRead) {
  auto places = published(chain(0, 1));
  tier.probe({chain(0, 1), true, false});
  tier.discard({places[0].id});
  auto fresh = published(chain(0, 1));
  EXPECT_NE(fresh[0].id, places[0].id);
  EXPECT_NE(fresh[0].offset, places[0].offset);
  tier.release({places[0].id});
  EXPECT_TRUE(sees(0));
}

TEST_F(Residency, AnAwaitEndsWhenTheLastOfItsObjectsIsPublishedOrAbandoned) {
  auto acquired = acquire(chain(0, 2));
  std::optional<errc> answer;
  tier.await(*chain(0, 3), nullptr, [&](awaited_end end) { answer = end.code; });
  tier.publish({acquired.places[0]}, false);
  EXPECT_FALSE(answer);
  tier.abandon({acquired.places[1].id});
  EXPECT_EQ(answer, errc::ok);
}

TEST_F(Residency, AnAwaitTellsWhetherAWriterGaveUp) {
  auto acquired = acquire(chain(0, 2));
  std::optional<bool> first;
  std::optional<bool> both;
  tier.await(*chain(0, 1), nullptr, [&](awaited_end end) { first = end.abandoned; });
  tier.await(*chain(0, 2), nullptr, [&](awaited_end end) { both = end.abandoned; });
  tier.publish({acquired.places[0]}, false);
  EXPECT_EQ(first, false);
  tier.abandon({acquired.places[1].id});
  EXPECT_EQ(both, true);
}

TEST_F(Residency, AnAwaitOfNothingInWorkIsAnsweredAtOnce) {
  published(chain(0, 1));
  std::optional<errc> answer;
  tier.await(*chain(0, 2), nullptr, [&](awaited_end end) { answer = end.code; });
  EXPECT_EQ(answer, errc::ok);
}

TEST_F(Residency, SweepAnswersAwaitsOfEndedRequestsOnceAndKeepsTheOthers) {
  auto acquired = acquire(chain(0, 2));
  auto ending = context();
  std::vector<errc> first;
  std::vector<errc> second;
  tier.await(*chain(0, 2), ending, [&](awaited_end end) { first.push_back(end.code); });
  tier.await(*chain(0, 2), context(), [&](awaited_end end) { second.push_back(end.code); });
  tier.sweep();
  EXPECT_TRUE(first.empty());
  ending->ended = errc::deadline;
  tier.sweep();
  EXPECT_EQ(first, std::vector{errc::deadline});
  EXPECT_TRUE(second.empty());
  tier.publish(acquired.places, false);
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second, std::vector{errc::ok});
}

TEST_F(Residency, SaysWhatHoldsItsBytes) {
  published(chain(0, 1));
  tier.probe({chain(0, 1), true, false});
  acquire(chain(1, 2));
  std::string text = tier.describe_holders().text;
  EXPECT_NE(text.find("hold 8.00 KiB in 1 object "), std::string::npos) << text;
  EXPECT_NE(text.find("writes in progress 16.0 KiB"), std::string::npos) << text;
}

TEST_F(Residency, ADetachedObjectFreesItsKeyAtOnceAndItsSpaceWhenItIsAbandoned) {
  auto first = acquire(chain(0, 2));
  std::optional<errc> heard;
  tier.await(*chain(0, 1), nullptr, [&heard](awaited_end end) { heard = end.code; });
  tier.detach({first.reserved[0], first.reserved[1]});
  EXPECT_EQ(heard, errc::ok); // nobody waits for an object that will not come
  EXPECT_FALSE(sees(0));
  auto second = acquire(chain(0, 1));
  EXPECT_EQ(second.states, std::vector{acquired_state::reserved});
  heard.reset();
  tier.await(*chain(0, 1), nullptr, [&heard](awaited_end end) { heard = end.code; });
  auto freed = tier.abandon(first.reserved);
  ASSERT_EQ(freed.size(), 2u);
  EXPECT_EQ(freed[0].offset, first.places[0].offset);
  EXPECT_FALSE(heard); // the second writer of the key is still working
  tier.publish(second.places, false);
  EXPECT_EQ(heard, errc::ok);
  EXPECT_TRUE(sees(0));
  EXPECT_TRUE(tier.abandon(first.reserved).empty());
  EXPECT_EQ(tier.table().totals().held.objects, 0u);
}

TEST_F(Residency, PublishedObjectsAreNotDetached) {
  auto places = published(chain(0, 1));
  tier.detach({places[0].id});
  EXPECT_TRUE(sees(0));
}

TEST_F(Residency, AClearInStepsRemovesWhatWasThereWhenItBegan) {
  constexpr size_t count = 2 * residency::clear_objects_max + 10;
  published(chain(0, count));
  residency::clear_walk walk;
  size_t steps = 1, freed = 0;
  for (; tier.clear_step(walk); ++steps) {
    EXPECT_LE(walk.freed.size(), residency::clear_objects_max);
    freed += walk.freed.size();
    if (steps == 1)
      published(chain(10'000, 3)); // behind the walk, in slots that it freed
  }
  freed += walk.freed.size();
  EXPECT_EQ(steps, 3u);
  EXPECT_EQ(freed, count);
  EXPECT_EQ(walk.objects, count);
  for (uint64_t number : {0, 1'000, 2'057})
    EXPECT_FALSE(sees(number));
  EXPECT_TRUE(sees(10'000));
}

TEST_F(Residency, ATierThatOnlyStagesKeepsWhatIsHeldAndNothingElse) {
  tier.departures().only_stage();
  auto acquired = acquire(chain(0, 2));
  auto held = tier.publish(acquired.places, true);
  EXPECT_TRUE(sees(0));
  EXPECT_TRUE(tier.departures().take_left().empty());
  EXPECT_TRUE(tier.release({held[0].id}).empty());
  EXPECT_FALSE(sees(0));
  EXPECT_TRUE(sees(1)) << "it is still held";
  EXPECT_EQ(tier.departures().take_left().size(), 1U);
  acquired = acquire(chain(7, 1));
  tier.publish(acquired.places, false);
  EXPECT_FALSE(sees(7)) << "nobody held it";
  EXPECT_EQ(tier.departures().take_left().size(), 1U);
}

TEST_F(Residency, WhatIsReplacedIsFoundUntilItsSuccessorHasSpace) {
  auto earlier = published(chain(0, 2));
  acquire_request request;
  request.objects = chain(0, 3);
  request.replace = true;
  auto wanted = tier.missing(request);
  EXPECT_EQ(wanted.sizes.size(), 3u);
  EXPECT_TRUE(sees(0)) << "it waits for space";
  auto later = tier.acquire(request, wanted, extents_for(wanted));
  EXPECT_EQ(later.states, std::vector(3, acquired_state::reserved));
  EXPECT_EQ(later.replaced, 2u);
  EXPECT_EQ(later.replaced_bytes, 2 * earlier[0].physical_bytes);
  EXPECT_EQ(later.unused.size(), 2u) << "the space of those that were there";
  EXPECT_EQ(notes(), (note_list{{note_kind::erase, name(0)}, {note_kind::erase, name(1)}}));
  EXPECT_FALSE(sees(0));
  tier.publish(later.places, false);
  EXPECT_TRUE(sees(0));
}

TEST_F(Residency, OfWhatIsReplacedTheReadersKeepTheBytes) {
  auto earlier = published(chain(0, 1));
  tier.probe({chain(0, 1), true, false});
  acquire_request request;
  request.objects = chain(0, 1);
  request.replace = true;
  auto wanted = tier.missing(request);
  auto later = tier.acquire(request, wanted, extents_for(wanted));
  EXPECT_EQ(later.states, std::vector(1, acquired_state::reserved));
  EXPECT_TRUE(later.unused.empty());
  EXPECT_EQ(tier.release({earlier[0].id}).size(), 1u);
}

TEST_F(Residency, WhoReplacesDoesNotDisturbAnotherWriter) {
  auto others = acquire(chain(0, 1));
  acquire_request request;
  request.objects = chain(0, 1);
  request.replace = true;
  auto wanted = tier.missing(request);
  EXPECT_TRUE(wanted.sizes.empty());
  EXPECT_EQ(tier.acquire(request, wanted, {}).states, std::vector(1, acquired_state::pending));
  // Two requests replace the same object: the one that gets space first writes, and the other finds it pending.
  tier.publish(others.places, false);
  wanted = tier.missing(request);
  auto first = tier.acquire(request, wanted, extents_for(wanted));
  auto second = tier.acquire(request, wanted, extents_for(wanted));
  EXPECT_EQ(first.states, std::vector(1, acquired_state::reserved));
  EXPECT_EQ(second.states, std::vector(1, acquired_state::pending));
  EXPECT_EQ(second.unused.size(), 1u);
}

TEST_F(Residency, ARemovalTakesWhatIsThereAndWhatIsBeingWritten) {
  published(chain(0, 1));
  auto writing = acquire(chain(1, 1));
  bool told = false;
  tier.await(*chain(1, 1), nullptr, [&](const awaited_end&) { told = true; });
  auto gone = tier.remove({chain(1, 1), false});
  EXPECT_TRUE(gone.pending);
  EXPECT_FALSE(told);
  gone = tier.remove({chain(0, 3)});
  EXPECT_FALSE(gone.pending);
  EXPECT_EQ(gone.removed, (std::vector{true, false, false}));
  EXPECT_EQ(gone.of.freed.size(), 1u);
  EXPECT_TRUE(told) << "nobody waits for what will not come";
  EXPECT_FALSE(tier.publish(writing.places, false)[0].present());
  EXPECT_FALSE(sees(1));
  EXPECT_EQ(acquire(chain(1, 1)).states, std::vector(1, acquired_state::reserved)) << "the key is free";
  EXPECT_EQ(tier.abandon({writing.places[0].id}).size(), 1u) << "its space is its writer's until then";
}

} // namespace residency_test
