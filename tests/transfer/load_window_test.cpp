#include "transfer/load_window.hpp"

#include "index/object_header.hpp"
#include "tests/support/counters.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t payload = 4096;
constexpr uint64_t physical = physical_bytes_for(payload);
constexpr uint64_t unlimited = UINT64_MAX;

using state = acquired_state;
using step = load_window::step;
using next = load_window::next;

/// A load of eight chunks of one object. Host memory has room for 16 objects, of which leases may hold 12.
struct LoadWindow : ::testing::Test {
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create({.name = "test", .bytes = 16 * physical, .segment_bytes = 16 * physical})
          .value();
  ledger_ptr leases = std::make_shared<lease_ledger>();
  tier_index host;
  load_subject of;
  load_result done;
  load_plan plan{of, *memory, *leases, done};

  LoadWindow() {
    of.objects = chain(1, 8, payload);
    of.context = context();
    copies();
  }

  void copies() {
    std::vector<region_run> runs;
    for (size_t i = 0; i < of.objects->size(); ++i)
      runs.push_back({i * payload, payload, 0, 1});
    of.runs = std::make_shared<const scatter_gather>(
        scatter_gather::make(runs, {}, of.objects->payload_bytes, of.objects->size() * payload).value());
  }
  void keeps() { of.runs = nullptr; }

  /// Places with ids from 1 on; a zero is absent.
  static hold_ptr hold(size_t objects, const std::vector<size_t>& has, uint64_t first_id = 1) {
    std::vector<object_place> places(objects);
    for (size_t i : has)
      places[i] = {object_id{first_id + i}, i * physical, payload, physical};
    return std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
  }
  /// '#' held, '.' absent, '?' being written by others, 'r' reserved.
  static acquire_answer acquired(const std::string& states, uint64_t held_bytes = 0) {
    acquire_answer made;
    std::vector<size_t> held;
    made.places.resize(states.size());
    for (size_t i = 0; i < states.size(); ++i) {
      made.states.push_back(states[i] == '#'   ? state::held
                            : states[i] == 'r' ? state::reserved
                            : states[i] == '?' ? state::pending
                                               : state::absent);
      if (states[i] == '#' || states[i] == 'r')
        made.places[i] = {object_id{1 + i}, i * physical, payload, physical};
      if (states[i] == '#')
        held.push_back(i);
    }
    made.held = hold(states.size(), held);
    made.held_bytes = held_bytes;
    return made;
  }
  static constexpr load_window::tiers_below none{}, disk{true, true}, away{true, false};

  /// The way of the window's objects from the disk.
  static passage from_disk(const load_window& window, const std::vector<size_t>& has) {
    return passage(window.reading({{tier_kind::disk, hold(window.objects()->size(), has, 101)}}));
  }
  /// They are read and found intact where `states` has 'r', and published in host memory or passed through.
  static passage read(load_window& window, const std::vector<size_t>& has, const std::string& states,
                      bool publishes = true) {
    passage pass = from_disk(window, has);
    EXPECT_TRUE(window.space(pass));
    pass.add_space(acquired(states));
    EXPECT_TRUE(pass.empty() || window.publishes(pass) == publishes);
    auto count = pass.size();
    std::vector<size_t> all(count);
    std::iota(all.begin(), all.end(), 0);
    if (publishes && count != 0)
      pass.add_published({.failure = {}, .held = hold(count, all, 50)});
    window.add_read(pass);
    return pass;
  }
  error ok;
};

} // namespace

TEST_F(LoadWindow, DeliversWhatIsInHostMemory) {
  load_window window(plan, unlimited);
  auto request = window.present();
  EXPECT_FALSE(request.fill);
  EXPECT_TRUE(request.note_access);
  EXPECT_EQ(window.add_present(acquired("########"), none), step::ready);
  EXPECT_EQ(window.after_rounds(ok), next::deliver);
  ASSERT_TRUE(window.copies());
  auto copy = window.copy();
  EXPECT_EQ(copy.direction, copy_direction::out_of_arena);
  EXPECT_EQ(copy.objects.size(), 8u);
  EXPECT_EQ(copy.owners.size(), 2u);
  EXPECT_EQ(window.deliver()[static_cast<size_t>(tier_kind::host)], 8 * payload);
  EXPECT_FALSE(window.after_delivery());
  EXPECT_NE(window.from_host(), nullptr);
  EXPECT_TRUE(plan.complete());
  EXPECT_EQ(done.chunks, 8u);
  EXPECT_EQ(done.bytes, 8 * payload);
  EXPECT_TRUE(done.places->empty());
}

TEST_F(LoadWindow, WindowsFollowEachOther) {
  load_window first(plan, 3 * physical);
  ASSERT_EQ(first.objects()->size(), 3u);
  EXPECT_EQ(first.add_present(acquired("###"), none), step::ready);
  first.deliver();
  EXPECT_FALSE(first.after_delivery());
  load_window second(plan, 3 * physical);
  EXPECT_EQ(second.objects()->keys[0], of.objects->keys[3]);
}

TEST_F(LoadWindow, EndsAtTheFirstObjectThatNoTierHas) {
  load_window window(plan, unlimited);
  EXPECT_EQ(window.add_present(acquired("###.####"), none), step::ready);
  window.deliver();
  auto end = window.after_delivery();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, errc::ok);
  EXPECT_EQ(done.chunks, 3u);
  EXPECT_EQ(done.missing, 3u);
  EXPECT_FALSE(done.damaged);
}

TEST_F(LoadWindow, OnlyWholeChunksAreDelivered) {
  of.objects_per_chunk = 2;
  load_window window(plan, unlimited);
  EXPECT_EQ(window.add_present(acquired("###.####"), none), step::ready);
  window.deliver();
  EXPECT_TRUE(window.after_delivery());
  EXPECT_EQ(done.chunks, 1u);
  EXPECT_EQ(done.missing, 3u);
}

TEST_F(LoadWindow, AnObjectOfTheLeaseThatWasClearedIsGone) {
  of.leased = {{tier_kind::host, hold(8, {0, 1, 2, 3})}};
  load_window window(plan, unlimited);
  EXPECT_EQ(window.add_present(acquired("##......"), away), step::ready);
  window.deliver();
  auto end = window.after_delivery();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, errc::gone);
}

TEST_F(LoadWindow, WhatTheLeaseHoldsInATierThatCannotBeReadIsDamaged) {
  of.leased = {{tier_kind::disk, hold(8, {0, 1, 2, 3}, 101)}};
  load_window window(plan, unlimited);
  EXPECT_EQ(window.add_present(acquired("##......"), away), step::ready);
  window.deliver();
  EXPECT_EQ(window.after_delivery()->code, errc::ok);
  EXPECT_EQ(done.missing, 2u);
  EXPECT_TRUE(done.damaged);
}

TEST_F(LoadWindow, WaitsForOthersAndGivesUpAfterSomeRounds) {
  load_window window(plan, unlimited);
  for (int round = 0; round < load_window::attempts_max; ++round) {
    EXPECT_EQ(window.present().note_access, round == 0) << "a load is one access";
    EXPECT_EQ(window.add_present(acquired("#?######"), disk), step::await);
    EXPECT_TRUE(window.release_and_wait());
  }
  EXPECT_EQ(window.add_present(acquired("#?######"), disk), step::await);
  EXPECT_FALSE(window.release_and_wait());
  EXPECT_EQ(window.gave_up().code, errc::ok) << "what is missing is absent";
  of.held_by = std::make_shared<int>();
  EXPECT_EQ(window.gave_up().code, errc::busy);
}

TEST_F(LoadWindow, ReadsTheRestFromBelowAndPublishesIt) {
  load_window window(plan, 4 * physical);
  EXPECT_EQ(window.add_present(acquired("##.."), disk), step::read_below);
  EXPECT_FALSE(window.leased_below());
  auto pass = read(window, {2, 3}, "##rr");
  auto publish = pass.publication();
  EXPECT_TRUE(publish.hold);
  EXPECT_EQ(publish.places.size(), 2u);
  EXPECT_EQ(window.after_reading(false), step::ready);
  EXPECT_EQ(window.after_rounds(ok), next::deliver);
  EXPECT_EQ(window.copy().objects.size(), 4u);
  auto by_tier = window.deliver();
  EXPECT_EQ(by_tier[static_cast<size_t>(tier_kind::host)], 2 * payload);
  EXPECT_EQ(by_tier[static_cast<size_t>(tier_kind::disk)], 2 * payload);
  EXPECT_EQ(plan.promoted, 2 * physical);
}

TEST_F(LoadWindow, SpaceIsAskedForExactlyWhatTheTiersBelowHave) {
  load_window window(plan, 4 * physical);
  EXPECT_EQ(window.add_present(acquired("#..."), disk), step::read_below);
  auto pass = from_disk(window, {1, 2});
  auto request = window.space(pass);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->may_fill, (std::vector<bool>{false, true, true, false}));
  EXPECT_TRUE(request->may_wait);
  EXPECT_FALSE(request->note_access);
}

TEST_F(LoadWindow, WithoutSpaceItComesAgainUnlessItIsTheLeastThatWaits) {
  auto comes_again = [](load_window& window, size_t objects) {
    EXPECT_EQ(window.add_present(acquired(std::string(objects, '.')), disk), step::read_below);
    auto pass = from_disk(window, {0});
    auto request = window.space(pass);
    EXPECT_TRUE(request);
    return request && request->may_come_again;
  };
  load_window four(plan, 4 * physical), one(plan, physical), behind(plan, physical, 1);
  EXPECT_TRUE(comes_again(four, 4)) << "with a smaller window";
  EXPECT_FALSE(comes_again(one, 1));
  EXPECT_TRUE(comes_again(behind, 1)) << "once it is the first";
  keeps();
  plan.piecewise = true;
  load_window kept(plan, physical);
  EXPECT_FALSE(comes_again(kept, 1));
  done.chunks = 1;
  EXPECT_TRUE(comes_again(kept, 1)) << "it is content with what it has";
}

TEST_F(LoadWindow, WhatIsBehindAGapIsNotRead) {
  load_window window(plan, 6 * physical);
  EXPECT_EQ(window.add_present(acquired("#....#"), disk), step::read_below);
  auto pass = from_disk(window, {1, 3, 4});
  auto request = window.space(pass);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->may_fill, (std::vector<bool>{false, true, false, false, false, false}));
}

TEST_F(LoadWindow, NorAreTheObjectsOfAChunkThatIsNotWhole) {
  of.objects_per_chunk = 2;
  load_window window(plan, 6 * physical);
  EXPECT_EQ(window.add_present(acquired("......"), disk), step::read_below);
  auto pass = from_disk(window, {0, 1, 2, 4, 5});
  auto request = window.space(pass);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->may_fill, (std::vector<bool>{true, true, false, false, false, false}));
  pass.add_space(acquired("rr...."));
  EXPECT_TRUE(window.publishes(pass));
  pass.add_published({.failure = {}, .held = hold(2, {0, 1}, 50)});
  window.add_read(pass);
  EXPECT_EQ(window.after_reading(false), step::ready);
  EXPECT_EQ(window.after_rounds(ok), next::deliver);
  window.deliver();
  EXPECT_EQ(window.after_delivery()->code, errc::ok);
  EXPECT_EQ(done.chunks, 1u);
  EXPECT_EQ(done.missing, 3u) << "the second object of the chunk";
  EXPECT_FALSE(done.damaged);
}

TEST_F(LoadWindow, WhatTheLeaseHoldsBelowIsReadWithoutAskingWhatIsPresent) {
  of.held_by = std::make_shared<int>();
  of.leased = {{tier_kind::host, hold(8, {0, 1})}, {tier_kind::disk, hold(8, {2, 3}, 101)}};
  load_window window(plan, 4 * physical);
  EXPECT_FALSE(window.begin_below(host, away)) << "the tier cannot be read now";
  ASSERT_TRUE(window.begin_below(host, disk));
  passage pass(window.reading(*window.leased_below()));
  auto request = window.space(pass);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->may_fill, (std::vector<bool>{false, false, true, true}));
  EXPECT_TRUE(request->note_access) << "nobody else notes it";
  EXPECT_TRUE(window.release_and_wait());
  ASSERT_TRUE(window.begin_below(host, disk));
  EXPECT_FALSE(window.space(pass)->note_access) << "a load is one access";
  pass.add_space(acquired("##rr", 5 * physical));
  EXPECT_TRUE(window.publishes(pass));
  EXPECT_EQ(plan.others_hold, 3 * physical) << "its own two are in nobody's way";
}

TEST_F(LoadWindow, WhatIsPresentIsAskedUnlessTheLeaseSaysThatSomethingIsBelow) {
  of.leased = {{tier_kind::host, hold(8, {0, 1, 2, 3})}, {tier_kind::disk, hold(8, {4}, 101)}};
  host.table().insert({of.objects->keys[7], {}, 0, physical, payload, false});
  EXPECT_FALSE(load_window(plan, 4 * physical, 4).begin_below(host, disk)) << "there is no lease";
  of.held_by = std::make_shared<int>();
  EXPECT_FALSE(load_window(plan, 4 * physical).begin_below(host, disk))
      << "it holds all of it in host memory";
  EXPECT_TRUE(load_window(plan, 4 * physical, 4).begin_below(host, disk));
  keeps();
  EXPECT_FALSE(load_window(plan, 4 * physical, 4).begin_below(host, disk)) << "what stays is accounted first";
}

TEST_F(LoadWindow, WhatHostMemorySurelyLacksIsReadWithoutAskingWhatIsPresent) {
  load_window window(plan, 4 * physical);
  EXPECT_FALSE(window.begin_below(host, away)) << "the tier cannot be read now";
  ASSERT_TRUE(window.begin_below(host, disk));
  auto pass = from_disk(window, {0, 1, 2, 3});
  EXPECT_TRUE(window.space(pass)->note_access) << "nobody else notes it";
  host.table().insert({of.objects->keys[1], {}, 0, physical, payload, false});
  EXPECT_FALSE(window.begin_below(host, disk)) << "another request writes one of the objects";
  EXPECT_TRUE(load_window(plan, 4 * physical, 4).begin_below(host, disk));
}

TEST_F(LoadWindow, OfManyObjectsHostMemoryIsAsked) {
  of.objects = chain(1, load_window::read_objects_max + 1, payload);
  copies();
  EXPECT_FALSE(load_window(plan, unlimited).begin_below(host, disk));
  EXPECT_TRUE(load_window(plan, load_window::read_objects_max * physical).begin_below(host, disk));
}

TEST_F(LoadWindow, TheLeasesPartOfTheWindowKeepsTheLease) {
  of.leased = {{tier_kind::host, hold(8, {0})}, {tier_kind::disk, hold(8, {3, 4, 5}, 101)}};
  plan.begin = 4;
  load_window window(plan, 3 * physical);
  std::weak_ptr<object_hold> lease = of.leased[1].held;
  auto below = window.leased_below();
  ASSERT_TRUE(below);
  ASSERT_EQ(below->size(), 1u);
  const auto& places = below->front().held->places();
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].id, object_id{105});
  EXPECT_FALSE(places[2].present());
  of.leased.clear();
  EXPECT_FALSE(lease.expired());
  below.reset();
  EXPECT_TRUE(lease.expired());
}

TEST_F(LoadWindow, DamagedObjectsEndTheLoad) {
  load_window window(plan, 4 * physical);
  EXPECT_EQ(window.add_present(acquired("##.."), disk), step::read_below);
  auto pass = from_disk(window, {2, 3});
  pass.add_space(acquired("##rr"));
  pass.add_outcomes(0, {move_outcome::failed, move_outcome::failed});
  window.add_read(pass);
  EXPECT_EQ(window.after_reading(false), step::ready);
  window.deliver();
  EXPECT_EQ(window.after_delivery()->code, errc::ok);
  EXPECT_EQ(done.missing, 2u);
  EXPECT_TRUE(done.damaged);
}

TEST_F(LoadWindow, WhatIsLateEndsTheLoadAndNothingIsMissing) {
  load_window window(plan, 4 * physical);
  EXPECT_EQ(window.add_present(acquired("#..."), disk), step::read_below);
  auto pass = from_disk(window, {1, 2, 3});
  pass.add_space(acquired("#rrr"));
  pass.add_outcomes(0, {move_outcome::done, move_outcome::late, move_outcome::done});
  pass.on_arrival([] { return false; });
  window.add_read(pass);
  EXPECT_EQ(window.after_reading(true), step::ready) << "it waits for nobody";
  window.deliver();
  EXPECT_EQ(window.after_delivery()->code, errc::ok);
  EXPECT_EQ(done.chunks, 2u);
  EXPECT_TRUE(done.late);
  EXPECT_FALSE(done.missing);
  EXPECT_FALSE(done.damaged);
}

TEST_F(LoadWindow, ObjectsEvictedMeanwhileBeginTheNextWindow) {
  load_window window(plan, 4 * physical);
  EXPECT_EQ(window.add_present(acquired("##.."), disk), step::read_below);
  read(window, {0, 2, 3}, ".#..");
  EXPECT_EQ(window.after_reading(false), step::ready);
  EXPECT_FALSE(window.copies());
  window.deliver();
  EXPECT_FALSE(window.after_delivery());
  EXPECT_EQ(plan.fruitless, 1u);
  EXPECT_EQ(load_window(plan, 4 * physical).objects()->size(), 2u) << "the window is halved";
  plan.fruitless = load_window::fruitless_max;
  auto end = window.after_delivery();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, errc::busy);
}

TEST_F(LoadWindow, WithoutSpaceASmallerWindowMayFit) {
  load_window window(plan, 4 * physical);
  error failure{errc::no_space, "full"};
  EXPECT_EQ(window.after_rounds(failure), next::again);
  EXPECT_EQ(plan.fruitless, 1u);
  load_window one(plan, physical);
  EXPECT_EQ(one.after_rounds(failure), next::end);
  EXPECT_EQ(failure.code, errc::no_space);
}

TEST_F(LoadWindow, GrowsAgainOnceWindowsAreDeliveredWhole) {
  error failure{errc::no_space, "full"};
  load_window large(plan, 4 * physical);
  EXPECT_EQ(large.after_rounds(failure), next::again);
  load_window half(plan, 4 * physical);
  ASSERT_EQ(half.objects()->size(), 2u);
  EXPECT_EQ(half.add_present(acquired("##"), none), step::ready);
  half.deliver();
  EXPECT_FALSE(half.after_delivery());
  EXPECT_EQ(load_window(plan, 4 * physical).objects()->size(), 4u);
}

TEST_F(LoadWindow, AChainLargerThanHostMemoryPassesThroughIt) {
  of.objects = chain(1, 20, payload);
  copies();
  plan.promoted = 8 * physical;
  load_window window(plan, 4 * physical);
  EXPECT_EQ(window.add_present(acquired("...."), disk), step::read_below);
  auto pass = read(window, {0, 1, 2, 3}, "rrrr", false);
  EXPECT_EQ(window.after_reading(false), step::ready);
  EXPECT_EQ(window.copy().objects.size(), 4u);
  plan.promoted = 7 * physical;
  EXPECT_TRUE(window.publishes(pass)) << "half of host memory is kept";
  plan.promoted = 8 * physical;
  auto awaited = from_disk(window, {0, 1, 2, 3});
  awaited.add_space(acquired("rrr?"));
  EXPECT_TRUE(window.publishes(awaited)) << "others wait for what is not visible";
}

TEST_F(LoadWindow, WithoutACopyEverythingIsOneWindowIfItIsThere) {
  keeps();
  load_window window(plan, physical);
  ASSERT_EQ(window.objects()->size(), 8u);
  EXPECT_EQ(window.add_present(acquired("########", 8 * physical), disk), step::ready);
  EXPECT_EQ(window.after_rounds(ok), next::deliver);
  EXPECT_FALSE(window.copies());
  window.deliver();
  EXPECT_EQ(done.places->size(), 8u);
  EXPECT_EQ(done.holds.size(), 1u);
}

TEST_F(LoadWindow, WithoutACopyTheRestComesInSmallerWindows) {
  keeps();
  load_window whole(plan, physical);
  EXPECT_EQ(whole.add_present(acquired("#######."), disk), step::ready);
  EXPECT_EQ(whole.after_rounds(ok), next::again);
  load_window window(plan, physical);
  EXPECT_EQ(window.objects()->size(), 1u);
  EXPECT_EQ(window.add_present(acquired("#"), disk), step::ready);
  EXPECT_EQ(window.after_rounds(ok), next::deliver);
}

TEST_F(LoadWindow, WithoutACopyItEndsWhereLeasesLeaveNoRoom) {
  keeps();
  of.account = leases->open();
  plan.piecewise = true;
  auto other = leases->open();
  auto leased = other->charge(hold(12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 201));
  load_window first(plan, physical);
  auto refused = first.add_present(acquired("#"), disk);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_space);
  EXPECT_NE(refused.error().text.find("(those of this connection "), std::string::npos)
      << refused.error().text;
  error failure = refused.error();
  EXPECT_EQ(first.after_rounds(failure), next::end);
  EXPECT_EQ(failure.code, errc::no_space);

  done.chunks = 1; // with something delivered that is the answer
  EXPECT_FALSE(first.add_present(acquired("#"), disk));
  EXPECT_EQ(first.after_rounds(failure), next::end);
  EXPECT_EQ(failure.code, errc::ok);
}

TEST_F(LoadWindow, WithoutACopyWhatTransfersHoldIsNotCountedAsLeased) {
  keeps();
  of.account = leases->open();
  plan.piecewise = true;
  load_window window(plan, 4 * physical);
  EXPECT_EQ(window.add_present(acquired("##..", 14 * physical), disk), step::read_below);
  EXPECT_EQ(plan.others_hold, 0u);
  auto pass = from_disk(window, {2, 3});
  EXPECT_TRUE(window.space(pass)) << "the transfers end";
}

TEST_F(LoadWindow, WithoutACopyItDeliversTheChunksForWhichThereIsRoom) {
  keeps();
  of.account = leases->open();
  plan.piecewise = true;
  auto other = leases->open();
  auto leased = other->charge(hold(8, {0, 1, 2, 3, 4, 5, 6, 7}, 201));
  {
    load_window window(plan, 4 * physical);
    done.chunks = 1;
    auto refused = window.add_present(acquired("####"), disk);
    ASSERT_FALSE(refused) << "of the four that are left, three are for it";
    EXPECT_TRUE(plan.full);
    error failure = refused.error();
    EXPECT_EQ(window.after_rounds(failure), next::again);
    EXPECT_FALSE(plan.full);
  }
  load_window half(plan, 4 * physical);
  ASSERT_EQ(half.objects()->size(), 2u);
  EXPECT_EQ(half.add_present(acquired("##"), disk), step::ready);
}

TEST_F(LoadWindow, WithoutACopyWhatTheLeaseHoldsMayStay) {
  keeps();
  of.leased = {{tier_kind::host, hold(8, {0, 1, 2, 3, 4, 5, 6, 7})}};
  load_window window(plan, physical);
  EXPECT_EQ(window.add_present(acquired("########", 13 * physical), disk), step::ready);
  EXPECT_EQ(window.after_rounds(ok), next::deliver);
}

TEST_F(LoadWindow, WithoutACopyReadingNeedsRoomBesideLeases) {
  keeps();
  plan.piecewise = true;
  load_window window(plan, 2 * physical);
  EXPECT_EQ(window.add_present(acquired("..", 11 * physical), disk), step::read_below);
  auto pass = from_disk(window, {0, 1});
  auto request = window.space(pass);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, errc::no_space);
  EXPECT_FALSE(plan.full);
  done.chunks = 1;
  EXPECT_FALSE(window.space(pass));
  EXPECT_TRUE(plan.full);
  plan.full = false;
  window.refused_space({errc::no_space, ""});
  EXPECT_TRUE(plan.full);
  window.refused_space({errc::internal, ""});
  EXPECT_FALSE(plan.full);
}

TEST_F(LoadWindow, ArrivalsAreThoseOfItsWholeChunks) {
  client_counters client;
  of.objects_per_chunk = 2;
  of.arrivals = client.first(2);
  load_window window(plan, unlimited);
  ASSERT_EQ(window.add_present(acquired("#####.##"), none), step::ready);
  EXPECT_FALSE(window.whole());
  auto arrived = window.copy().arrived;
  EXPECT_EQ(arrived.counters, of.arrivals);
  EXPECT_EQ(std::tuple(arrived.first, arrived.count, arrived.chunks), std::tuple(0U, 2U, 2U));
}

struct a_page final : device_memory {};

TEST_F(LoadWindow, TheLastChunksBringTheGenerations) {
  of.objects_per_chunk = 2;
  of.generations = {std::make_shared<a_page>(), 8, 2, 5};
  load_window window(plan, unlimited);
  ASSERT_EQ(window.add_present(acquired("#####.##"), none), step::ready);
  EXPECT_EQ(window.copy().generations.page, nullptr) << "not all have arrived";
  load_window whole(plan, unlimited);
  ASSERT_EQ(whole.add_present(acquired("########"), none), step::ready);
  auto all = whole.copy().generations;
  EXPECT_EQ(std::tuple(all.page, all.slot, all.count, all.value),
            std::tuple(of.generations.page, 8U, 2U, 5U));
  auto second = whole.copy_pool(1).generations;
  EXPECT_EQ(std::tuple(second.page, second.slot, second.count, second.value),
            std::tuple(of.generations.page, 9U, 1U, 5U));
}

TEST_F(LoadWindow, IsCopiedPoolByPool) {
  client_counters client;
  of.objects_per_chunk = 2;
  of.arrivals = client.first(2);
  load_window window(plan, unlimited);
  ASSERT_EQ(window.add_present(acquired("########"), none), step::ready);
  EXPECT_TRUE(window.whole());
  for (size_t pool : {0U, 1U}) {
    auto copy = window.copy_pool(pool);
    ASSERT_EQ(copy.objects.size(), 4u);
    for (size_t chunk = 0; chunk < 4; ++chunk)
      EXPECT_EQ(copy.objects[chunk].number, chunk * 2 + pool);
    EXPECT_EQ(std::tuple(copy.arrived.first, copy.arrived.count, copy.arrived.chunks),
              std::tuple(pool, 1U, 4U));
    EXPECT_EQ(copy.owners.size(), 2u);
  }
}

TEST_F(LoadWindow, OnlyALeaseOnAllOfItInHostMemoryIsLoadedPoolByPool) {
  client_counters client;
  of.objects_per_chunk = 2;
  EXPECT_FALSE(of.by_pool()) << "nobody waits for a pool";
  of.arrivals = client.first(2);
  EXPECT_FALSE(of.by_pool()) << "there is no lease";
  of.leased = {{tier_kind::host, hold(8, {0, 1, 2, 3, 4, 5, 6, 7})}, {tier_kind::disk, hold(8, {0})}};
  EXPECT_TRUE(of.by_pool());
  of.leased = {{tier_kind::host, hold(8, {0, 1, 2, 3, 4, 5, 6})}, {tier_kind::disk, hold(8, {7})}};
  EXPECT_FALSE(of.by_pool()) << "an object is on disk alone";
  of.leased = {{tier_kind::disk, hold(8, {0, 1, 2, 3, 4, 5, 6, 7})}};
  EXPECT_FALSE(of.by_pool());
  of.leased = {{tier_kind::host, hold(8, {0, 1, 2, 3, 4, 5, 6, 7})}};
  of.objects_per_chunk = 1;
  EXPECT_FALSE(of.by_pool()) << "one pool is the same in both orders";
}
