#include "connection/client_holdings.hpp"

#include <gtest/gtest.h>

#include <future>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

using namespace terrace;
using namespace std::chrono_literals;

namespace {

struct ClientHoldings : testing::Test {
  client_holdings holdings{{.staging_bytes = 1 << 20,
                            .reservations = 2,
                            .spaces = 2,
                            .regions = 2,
                            .leases = 3,
                            .lease_objects = 10}};
  client_holdings::clock::time_point now{};
  uint8_t last_id = 0;

  static client_region_ptr region(uint64_t bytes, device_memory_ptr page = nullptr) {
    unique_fd memory(::memfd_create("region", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
    auto opened = client_region::open(std::move(memory), bytes, {{}, nullptr, {}, std::move(page)});
    EXPECT_TRUE(opened);
    return *opened;
  }
  static object_place place(uint64_t id) {
    object_place at;
    at.id = static_cast<object_id>(id);
    at.physical_bytes = 4096;
    return at;
  }
  /// A hold on the objects `first`, `first` + 1, ...; nobody is told of its end.
  static hold_ptr hold(uint64_t first, size_t count) {
    std::vector<object_place> places;
    for (uint64_t id = first; id < first + count; ++id)
      places.push_back(place(id));
    return hold_ptr(new object_hold({}, std::move(places)));
  }
  static std::shared_ptr<client_space> space(uint32_t id, uint16_t rank = 0) {
    auto opened = std::make_shared<opened_space>(opened_space{
        .id = space_id{id}, .spec = {.world_size = 8, .pools = {{.name = "kv"}}}, .fingerprint = {}});
    auto mine = std::make_shared<client_space>();
    mine->space = opened;
    mine->rank = rank;
    return mine;
  }
  /// The number of an object is its id.
  static lease_reading reading(const lease_ptr& from, const std::vector<object_place>& places,
                               std::vector<hold_ptr> holds) {
    lease_reading work;
    work.from = from;
    work.places = places;
    work.holds = std::move(holds);
    work.number = [&places](size_t i) { return static_cast<size_t>(places[i].id); };
    return work;
  }
  bool read(const lease_ptr& from, const std::vector<object_place>& places, std::vector<hold_ptr> holds) {
    auto work = reading(from, places, std::move(holds));
    for (;;) {
      auto more = holdings.read_some(work);
      if (!more || !*more)
        return more.has_value();
    }
  }
  lease_ptr lease_on(hold_ptr host) {
    auto taken = std::make_shared<lease>();
    taken->id.bytes[0] = ++last_id;
    if (host)
      taken->held.push_back({tier_kind::host, std::move(host)});
    taken->taken = now;
    return taken;
  }
};

} // namespace

TEST_F(ClientHoldings, ASpaceIsFoundByItsId) {
  ASSERT_TRUE(holdings.spaces().add(space(3, 2)));
  ASSERT_TRUE(holdings.spaces().find(space_id{3}));
  EXPECT_EQ(holdings.spaces().find(space_id{3})->rank, 2u);
  EXPECT_FALSE(holdings.spaces().find(space_id{4}));
}

TEST_F(ClientHoldings, AnOpenSpaceKeepsItsTerms) {
  ASSERT_TRUE(holdings.spaces().add(space(1, 0)));
  EXPECT_TRUE(holdings.spaces().add(space(1, 0)));
  auto other_rank = space(1, 3);
  auto ranks = other_rank->space->ranks;
  auto refused = holdings.spaces().add(other_rank);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("rank 0"), std::string::npos) << refused.error().text;
  EXPECT_NE(refused.error().text.find("rank 3"), std::string::npos) << refused.error().text;
  EXPECT_EQ(holdings.spaces().find(space_id{1})->rank, 0U);
  other_rank.reset();
  EXPECT_FALSE(ranks->has_left(3)) << "it never was there";

  auto other_defaults = space(1, 0);
  other_defaults->defaults.no_store = true;
  refused = holdings.spaces().add(other_defaults);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("no_store"), std::string::npos) << refused.error().text;
  ASSERT_TRUE(holdings.close_space(space_id{1}));
  EXPECT_TRUE(holdings.spaces().add(space(1, 3)));
}

TEST_F(ClientHoldings, ARankIsKnownOnceItsSpaceIsOpen) {
  auto what = space(1, 3)->space;
  auto unknown = holdings.spaces().rank_in(*what);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, errc::bad_request);
  EXPECT_NE(unknown.error().text.find("open_space"), std::string::npos) << unknown.error().text;
  ASSERT_TRUE(holdings.spaces().add(space(1, 3)));
  EXPECT_EQ(holdings.spaces().rank_in(*what), 3U);

  opened_space alone{.id = space_id{2}, .spec = {}, .fingerprint = {}};
  EXPECT_EQ(holdings.spaces().rank_in(alone), 0U) << "there is no other one";
  opened_space replicated{.id = space_id{3},
                          .spec = {.world_size = 8, .pools = {{.name = "mla", .replicated = true}}},
                          .fingerprint = {}};
  EXPECT_EQ(holdings.spaces().rank_in(replicated), 0U) << "all have the same objects";
}

TEST_F(ClientHoldings, SpacesHaveABoundThatTheErrorNames) {
  ASSERT_TRUE(holdings.spaces().add(space(1)));
  ASSERT_TRUE(holdings.spaces().add(space(2)));
  auto third = holdings.spaces().add(space(3));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, errc::busy);
  EXPECT_NE(third.error().text.find("a 16th of connection.group_spaces_max"), std::string::npos);
  EXPECT_TRUE(holdings.spaces().add(space(2))) << "opened again with the same rank, at the limit";
  ASSERT_TRUE(holdings.close_space(space_id{1}));
  EXPECT_TRUE(holdings.spaces().add(space(3)));
  EXPECT_EQ(holdings.close_space(space_id{1}).error().code, errc::not_found);
}

TEST_F(ClientHoldings, ASpaceWithALeaseStaysOpen) {
  auto mine = space(1);
  ASSERT_TRUE(holdings.spaces().add(mine));
  auto taken = std::make_shared<lease>(*lease_on(hold(1, 1)));
  taken->space = mine->space;
  holdings.add(lease_ptr(taken));
  EXPECT_EQ(holdings.close_space(space_id{1}).error().code, errc::busy);
  holdings.release(taken->id);
  EXPECT_TRUE(holdings.close_space(space_id{1}));
}

TEST_F(ClientHoldings, RegionsAreCountedAndBounded) {
  auto first = holdings.regions().add(region(4096));
  auto second = holdings.regions().add(region(8192));
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(holdings.regions().bytes(), 12288u);
  auto third = holdings.regions().add(region(4096));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, errc::busy);
  EXPECT_NE(third.error().text.find("as many as a connection may have"), std::string::npos);
}

TEST_F(ClientHoldings, ARemovedRegionStaysWithTheTransferThatUsesIt) {
  auto id = holdings.regions().add(region(4096));
  auto in_use = holdings.regions().registered(static_cast<uint32_t>(*id)).value();
  EXPECT_EQ(holdings.regions().remove(*id), in_use);
  EXPECT_EQ(holdings.regions().remove(*id), nullptr);
  EXPECT_FALSE(holdings.regions().registered(static_cast<uint32_t>(*id)));
  EXPECT_EQ(holdings.regions().bytes(), 0u);
  EXPECT_EQ(in_use->size(), 4096u);
}

TEST_F(ClientHoldings, StagingMemoryIsMadeWhenItIsFirstAskedFor) {
  EXPECT_EQ(holdings.present_staging(), nullptr);
  auto memory = holdings.staging_memory();
  ASSERT_TRUE(memory);
  EXPECT_EQ(holdings.present_staging(), *memory);
  EXPECT_EQ(*holdings.staging_memory(), *memory);
  holdings.close();
  EXPECT_EQ(holdings.present_staging(), nullptr);
}

TEST_F(ClientHoldings, LeasesAreBoundedByNumberAndByWhatTheyName) {
  holdings.add(lease_on(hold(1, 4)));
  holdings.add(lease_on(hold(5, 4)));
  EXPECT_EQ(holdings.lease_objects(), 8u);
  EXPECT_TRUE(holdings.may_name(2));
  auto too_much = holdings.may_name(3);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code, errc::busy);
  EXPECT_TRUE(holdings.may_lease());
  auto third = lease_on(nullptr);
  holdings.add(third);
  ASSERT_FALSE(holdings.may_lease());
  EXPECT_EQ(holdings.may_lease().error().code, errc::busy);
  EXPECT_TRUE(holdings.release(third->id));
  EXPECT_TRUE(holdings.may_lease());
}

TEST_F(ClientHoldings, AReleasedLeaseGivesItsNamesAndItsHoldsBack) {
  auto objects = hold(1, 4);
  std::weak_ptr<object_hold> watched = objects;
  auto taken = lease_on(std::move(objects));
  auto id = taken->id;
  holdings.add(std::move(taken));
  auto ended = holdings.release(id);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->owner);
  EXPECT_FALSE(ended->old);
  EXPECT_EQ(holdings.lease_objects(), 0u);
  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(holdings.release(id));
}

TEST_F(ClientHoldings, WhatIsReadTwiceIsNamedOnce) {
  auto other = lease_on(nullptr); // a lease of another connection
  ASSERT_TRUE(read(other, {place(1), place(2)}, {hold(1, 2)}));
  EXPECT_EQ(holdings.lease_objects(), 2u);
  ASSERT_TRUE(read(other, {place(2)}, {hold(2, 1)}));
  EXPECT_EQ(holdings.lease_objects(), 2u);
  EXPECT_EQ(holdings.reading_bytes(), 2 * 4096u);
  EXPECT_TRUE(holdings.may_be_reading(other->id));
  auto ended = holdings.release(other->id);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->owner);
}

TEST_F(ClientHoldings, AnObjectCountsOncePerLease) {
  auto taken = std::make_shared<lease>(*lease_on(hold(1, 4)));
  taken->held.push_back({tier_kind::disk, hold(101, 4)}); // the same objects in a lower tier
  lease_ptr mine = taken;
  holdings.add(mine);
  EXPECT_EQ(holdings.lease_objects(), 4u);
  ASSERT_TRUE(read(mine, {place(1), place(2)}, {hold(1, 2)}));
  EXPECT_EQ(holdings.lease_objects(), 4u) << "its owner reads what is counted already";
  holdings.has_read(mine->id);
  EXPECT_EQ(holdings.lease_objects(), 4u);
  auto other = lease_on(nullptr);
  ASSERT_TRUE(read(other, {place(11), place(12)}, {hold(11, 2)}));
  ASSERT_TRUE(read(other, {place(12), place(13)}, {hold(12, 2)}));
  EXPECT_EQ(holdings.lease_objects(), 7u) << "only the third is new";
}

TEST_F(ClientHoldings, AReadOverTheBoundChangesNothing) {
  auto other = lease_on(nullptr);
  std::vector<object_place> many;
  for (uint64_t id = 1; id <= 11; ++id)
    many.push_back(place(id));
  EXPECT_FALSE(read(other, many, {hold(1, 11)}));
  EXPECT_FALSE(holdings.holds(other->id));
  EXPECT_EQ(holdings.lease_objects(), 0u);
}

/// Reads of another connection's lease on many objects.
struct LongReads : ClientHoldings {
  static constexpr size_t many = 2 * lease_reading::step_objects + 1;
  client_holdings client{{.leases = 3, .lease_objects = 2 * many}};
  lease_ptr other = lease_on(nullptr);
  std::vector<object_place> places;
  hold_ptr held = hold(1, many);
  LongReads() {
    for (uint64_t id = 1; id <= many; ++id)
      places.push_back(place(id));
  }
  /// Returns true when the read is done.
  bool step(lease_reading& work) {
    auto more = client.read_some(work);
    EXPECT_TRUE(more);
    return !*more;
  }
};

TEST_F(LongReads, AreCountedAndToldInSteps) {
  auto work = reading(other, places, {held});
  int steps = 1;
  for (; !step(work); ++steps)
    EXPECT_EQ(client.lease_objects(), steps < 3 ? 0 : many) << steps;
  EXPECT_GE(steps, 5);
  EXPECT_EQ(client.lease_objects(), many);
  EXPECT_EQ(client.reading_bytes(), many * 4096);
  EXPECT_TRUE(client.has_read(other->id) == false) << "nothing ends elsewhere without a thread for it";
  EXPECT_EQ(client.lease_objects(), 0u);
  EXPECT_EQ(client.reading_bytes(), 0u);
}

TEST_F(LongReads, TwoAtOnceCountOnce) {
  auto one = reading(other, places, {held}), two = reading(other, places, {held});
  bool one_done = false, two_done = false;
  while (!one_done || !two_done) {
    one_done = one_done || step(one);
    two_done = two_done || step(two);
  }
  EXPECT_EQ(client.lease_objects(), many);
  EXPECT_TRUE(client.release(other->id));
  EXPECT_EQ(client.lease_objects(), 0u);
}

TEST_F(LongReads, TwoThatAreCommittedTogetherCountOnce) {
  auto one = reading(other, places, {held}), two = reading(other, places, {held});
  while (one.now != lease_reading::stage::telling)
    ASSERT_FALSE(step(one));
  bool one_done = false, two_done = false;
  while (!one_done || !two_done) { // the second read counts while the first one tells
    two_done = two_done || step(two);
    one_done = one_done || (two.now == lease_reading::stage::telling && step(one));
    if (two_done && !one_done)
      one_done = step(one);
  }
  EXPECT_EQ(client.lease_objects(), many);
}

TEST_F(LongReads, FailWhereTheLeaseIsReleasedMeanwhile) {
  auto work = reading(other, places, {held});
  while (work.now != lease_reading::stage::telling)
    ASSERT_FALSE(step(work));
  EXPECT_TRUE(client.release(other->id));
  auto more = client.read_some(work);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, errc::gone);
  EXPECT_EQ(client.lease_objects(), 0u);
  EXPECT_FALSE(client.holds(other->id));
}

TEST_F(LongReads, FailWhereTheClientHasDoneWithTheLeaseMeanwhile) {
  auto work = reading(other, places, {held});
  while (work.now != lease_reading::stage::telling)
    ASSERT_FALSE(step(work));
  client.has_read(other->id);
  EXPECT_EQ(client.read_some(work).error().code, errc::gone);
  EXPECT_EQ(client.lease_objects(), 0u);
}

TEST_F(ClientHoldings, ManyObjectsEndElsewhere) {
  auto ends = std::make_shared<teardown>();
  constexpr size_t many = object_hold::many_places;
  client_holdings client{{.leases = 3, .lease_objects = 2 * many}, nullptr, ends};
  std::promise<void> gate;
  ends->run([waiting = gate.get_future().share()] { waiting.wait(); });
  auto few = hold(1, many - 1), all = hold(1, many);
  std::weak_ptr<object_hold> few_watched = few, all_watched = all;
  auto small = lease_on(std::move(few)), large = lease_on(std::move(all));
  auto small_id = small->id, large_id = large->id;
  client.add(std::move(small));
  client.add(std::move(large));
  EXPECT_FALSE(client.ends_elsewhere(small_id));
  EXPECT_TRUE(client.ends_elsewhere(large_id));
  EXPECT_TRUE(client.release(small_id));
  EXPECT_TRUE(few_watched.expired());
  EXPECT_TRUE(client.release(large_id));
  EXPECT_FALSE(all_watched.expired());
  EXPECT_EQ(client.lease_objects(), 0u);
  gate.set_value();
  ends->finish();
  EXPECT_TRUE(all_watched.expired());
}

TEST_F(ClientHoldings, OwnedLeasesGrowOldOnce) {
  auto first = lease_on(nullptr);
  holdings.add(first);
  now += 10s;
  auto second = lease_on(nullptr);
  holdings.add(second);
  // The lease belongs to another connection, whose client is warned.
  ASSERT_TRUE(read(lease_on(nullptr), {}, {}));

  auto early = holdings.old_leases(now, 60s);
  EXPECT_TRUE(early.old.empty());
  EXPECT_EQ(early.next, now + 50s);
  now += 50s;
  auto due = holdings.old_leases(now, 60s);
  ASSERT_EQ(due.old.size(), 1u);
  EXPECT_EQ(due.old[0], first);
  EXPECT_EQ(due.next, now + 10s);
  EXPECT_TRUE(holdings.old_leases(now, 60s).old.empty());
  EXPECT_TRUE(holdings.release(first->id)->old);
}

TEST_F(ClientHoldings, TheEndLeavesWhatALivingClientMayBeReading) {
  auto owned = lease_on(hold(1, 1));
  auto read_too = lease_on(hold(2, 1));
  holdings.add(owned);
  holdings.add(read_too);
  ASSERT_TRUE(read(read_too, {place(2)}, {read_too->held.front().held}));
  holdings.regions().add(region(4096));
  EXPECT_EQ(holdings.close().size(), 2u);
  EXPECT_EQ(holdings.regions().count(), 0u);
  EXPECT_EQ(holdings.regions().bytes(), 0u);
  EXPECT_FALSE(holdings.holds(owned->id));
  EXPECT_TRUE(holdings.holds(read_too->id));
  EXPECT_EQ(holdings.reading_bytes(), 4096u);
  EXPECT_TRUE(holdings.close().empty()) << "they have ended for others once";
}

TEST_F(ClientHoldings, AnEndedProcessReadsNothing) {
  auto taken = lease_on(hold(1, 1));
  holdings.add(taken);
  ASSERT_TRUE(read(taken, {place(1)}, {taken->held.front().held}));
  holdings.client_ended();
  EXPECT_EQ(holdings.close().size(), 1u) << "the lease is counted as ended";
  EXPECT_EQ(holdings.leases(), 0u);
}

TEST_F(ClientHoldings, ARevokedLeaseThatIsNotReadHoldsNothing) {
  auto taken = lease_on(hold(1, 1));
  std::weak_ptr<object_hold> held = taken->held.front().held;
  auto id = taken->id;
  holdings.add(std::move(taken));
  auto revoked = holdings.revoke(id);
  ASSERT_TRUE(revoked);
  EXPECT_TRUE(revoked->ended.owner);
  EXPECT_EQ(revoked->reading_bytes, 0u);
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(holdings.leases(), 0u);
  EXPECT_FALSE(holdings.revoke(id));
}

TEST_F(ClientHoldings, WhatIsReadUnderARevokedLeaseStaysUntilItIsReleased) {
  ASSERT_TRUE(holdings.spaces().add(space(3)));
  auto objects = hold(1, 2);
  std::weak_ptr<object_hold> held = objects;
  auto taken = std::make_shared<lease>(*lease_on(std::move(objects)));
  taken->space = holdings.spaces().find(space_id{3})->space;
  auto id = taken->id;
  holdings.add(taken);
  auto reading = hold(1, 1);
  std::weak_ptr<object_hold> read_hold = reading;
  ASSERT_TRUE(read(taken, {place(1)}, {std::move(reading)}));
  taken.reset();
  auto revoked = holdings.revoke(id);
  ASSERT_TRUE(revoked);
  EXPECT_TRUE(revoked->ended.owner);
  EXPECT_EQ(revoked->reading_bytes, 4096u);
  EXPECT_EQ(holdings.revoked_bytes(), 4096u);
  EXPECT_TRUE(held.expired()) << "what is not read may be evicted";
  EXPECT_FALSE(read_hold.expired());
  EXPECT_EQ(holdings.lease_of(id), nullptr);
  EXPECT_FALSE(holdings.revoke(id)) << "once";
  EXPECT_TRUE(holdings.close_space(space_id{3})) << "nobody needs its rank";
  EXPECT_TRUE(holdings.old_leases(now + 1h, 60s).old.empty());
  auto ended = holdings.release(id);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->owner) << "it ended when it was revoked";
  EXPECT_TRUE(read_hold.expired());
  EXPECT_EQ(holdings.revoked_bytes(), 0u);
  EXPECT_EQ(holdings.reading_bytes(), 0u);
  EXPECT_EQ(holdings.lease_objects(), 0u);
}

TEST_F(ClientHoldings, NobodyBeginsToReadUnderARevokedLease) {
  auto other = lease_on(nullptr);
  auto places = std::vector{place(1)};
  auto work = reading(other, places, {hold(1, 1)});
  other->revoked.set();
  auto refused = holdings.read_some(work);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::gone);
  EXPECT_EQ(holdings.leases(), 0u);
}

TEST_F(ClientHoldings, AnEndedProcessReadsNothingUnderARevokedLease) {
  auto taken = lease_on(hold(1, 1));
  holdings.add(taken);
  ASSERT_TRUE(read(taken, {place(1)}, {taken->held.front().held}));
  ASSERT_TRUE(holdings.revoke(taken->id));
  EXPECT_TRUE(holdings.close().empty()) << "it ended when it was revoked";
  EXPECT_EQ(holdings.reading_bytes(), 4096u);
  holdings.client_ended();
  EXPECT_EQ(holdings.reading_bytes(), 0u);
  EXPECT_EQ(holdings.revoked_bytes(), 0u);
}

TEST_F(ClientHoldings, EventsThatALivingClientMayHaveOpenAreKept) {
  auto opened = std::make_shared<device_memory>(4);
  auto plain = std::make_shared<device_memory>();
  std::weak_ptr<device_memory> kept = opened, dropped = plain;
  for (const auto& page : {opened, plain})
    page->give_events();
  EXPECT_TRUE(opened->opened());
  EXPECT_FALSE(plain->opened()) << "it has none";
  ASSERT_TRUE(holdings.regions().add(region(4096, std::exchange(opened, nullptr))));
  ASSERT_TRUE(holdings.regions().add(region(4096, std::exchange(plain, nullptr))));
  EXPECT_FALSE(holdings.regions().keeps_events());
  holdings.close();
  EXPECT_TRUE(holdings.regions().keeps_events());
  EXPECT_TRUE(dropped.expired());
  opened = kept.lock();
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->opened());
  holdings.client_ended();
  EXPECT_FALSE(holdings.regions().keeps_events());
  EXPECT_FALSE(opened->opened());
  opened.reset();
  EXPECT_TRUE(kept.expired());
}

TEST_F(ClientHoldings, AClientThatDiesBeforeItsSocketIsClosedHasNothingOpen) {
  auto page = std::make_shared<device_memory>(4);
  page->give_events();
  ASSERT_TRUE(holdings.regions().add(region(4096, page)));
  holdings.client_ended();
  EXPECT_FALSE(page->opened());
  holdings.close();
  EXPECT_FALSE(holdings.regions().keeps_events());
}

TEST_F(ClientHoldings, ErrorsSayWhatWasNotOpenedOrRegistered) {
  ASSERT_TRUE(holdings.spaces().add(space(3)));
  EXPECT_EQ(holdings.spaces().opened(3).value()->space->id, space_id{3});
  EXPECT_EQ(holdings.spaces().opened(4).error().code, errc::not_found);
  EXPECT_NE(holdings.spaces().opened(4).error().text.find("has not opened space 4"), std::string::npos);
  auto id = holdings.regions().add(region(8192));
  ASSERT_TRUE(id);
  EXPECT_EQ(holdings.regions().registered(static_cast<uint32_t>(*id)).value()->size(), 8192u);
  EXPECT_EQ(holdings.regions().registered(77).error().code, errc::not_found);
}

TEST_F(ClientHoldings, AreShownInStatus) {
  client_state shown;
  ASSERT_TRUE(holdings.regions().add(region(8192)));
  holdings.add(lease_on(nullptr));
  ASSERT_TRUE(holdings.staging_memory().value()->reserve({}, {}));
  holdings.show(shown);
  EXPECT_EQ(shown.regions, 1u);
  EXPECT_EQ(shown.region_bytes, 8192u);
  EXPECT_EQ(shown.leases, 1u);
  EXPECT_EQ(shown.reservations, 1u);
  holdings.close();
  holdings.show(shown);
  EXPECT_EQ(shown.regions, 0u);
  EXPECT_EQ(shown.region_bytes, 0u);
  EXPECT_EQ(shown.leases, 0u);
  EXPECT_EQ(shown.reservations, 0u);
}
