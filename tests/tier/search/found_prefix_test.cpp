#include "tier/search/found_prefix.hpp"

#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

constexpr uint64_t object = physical_bytes_for(1 << 20);

struct recording_sink final : release_sink {
  std::vector<object_id> released;
  void release(std::vector<object_id> held) override {
    released.insert(released.end(), held.begin(), held.end());
  }
  void abandon(std::vector<object_id>) override {}
};

struct planned : found_prefix {
  planned(prefix_subject of, std::vector<tier_share> tiers, size_t probed)
      : found_prefix(std::move(of), std::move(tiers), probed) {
    while (plan_some())
      ;
  }
};

/// A group with host memory for 16 objects; leases may hold 12 of them, one connection 9, and 6 beside loads from
/// below. Objects are characters: '#' present, '.' absent. Ids begin at 1 in host memory, at 101 on the disk.
struct FoundPrefix : ::testing::Test {
  space_spec spec = terrace::test::small_space();
  std::shared_ptr<rank_presence> ranks;
  std::shared_ptr<recording_sink> host_tier = std::make_shared<recording_sink>(),
                                  disk_tier = std::make_shared<recording_sink>();
  ledger_ptr leases = std::make_shared<lease_ledger>();
  lease_room room{leases, leases->open(), 16 * object};
  bool hold = true, note_access = true;
  uint64_t held_on_disk = 0; ///< held by anybody

  tier_share share(tier_kind tier, const std::string& has) const {
    tier_share made{tier, object_bitmap(has.size()), nullptr};
    std::vector<object_place> places(has.size());
    uint64_t first = tier == tier_kind::host ? 1 : 101;
    for (size_t i = 0; i < has.size(); ++i)
      if (has[i] == '#') {
        made.present.set(i);
        places[i] = {object_id{first + i}, 0, 1 << 20, object};
      }
    if (hold)
      made.held_bytes = tier == tier_kind::host ? 0 : held_on_disk;
    if (hold)
      made.held =
          std::make_shared<object_hold>(tier == tier_kind::host ? host_tier : disk_tier, std::move(places));
    return made;
  }

  planned found(const std::string& host, const std::string& disk = {}) {
    auto in = std::make_shared<opened_space>(opened_space{space_id{1}, spec, spec.fingerprint()});
    in->ranks = ranks;
    size_t per_chunk = chunk_layout(spec).objects_per_chunk();
    prefix_subject of{in, {static_cast<uint32_t>(host.size() / per_chunk), 0, UINT64_MAX}, hold, note_access};
    std::vector<tier_share> shares{share(tier_kind::host, host)};
    if (!disk.empty())
      shares.push_back(share(tier_kind::disk, disk));
    return {of, std::move(shares), host.size()};
  }

  static void lease(found_prefix& prefix, const lease_room& in) {
    while (prefix.lease_some(in))
      ;
  }
  /// Returns the accesses by tier, in the order of the notices.
  static std::vector<std::vector<object_id>> accesses(found_prefix& prefix) {
    std::vector<std::vector<object_id>> all(2);
    while (auto some = prefix.next_accesses())
      for (size_t tier = 0; tier < some->size(); ++tier)
        all[tier].insert(all[tier].end(), (*some)[tier].ids.begin(), (*some)[tier].ids.end());
    return all;
  }
  static std::string kept(const hold_ptr& held) {
    std::string text;
    for (const object_place& place : held->places())
      text += place.present() ? '#' : '.';
    return text;
  }
  static std::vector<object_id> ids(std::initializer_list<uint64_t> of) {
    std::vector<object_id> made;
    for (uint64_t id : of)
      made.push_back(object_id{id});
    return made;
  }
};

} // namespace

TEST_F(FoundPrefix, ALeaseHoldsThePrefixAndReleasesWhatIsBehindIt) {
  auto prefix = found("##.#", "..#.");
  EXPECT_EQ(prefix.plan().found_chunks, 4u);
  auto shorter = found("##.#");
  EXPECT_EQ(shorter.plan().found_chunks, 2u);
  lease(shorter, room);
  EXPECT_FALSE(shorter.shortened());
  EXPECT_EQ(host_tier->released, ids({4}));
  auto used = accesses(shorter);
  EXPECT_EQ(used[0], ids({1, 2}));
  auto held = shorter.take_holds();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].tier, tier_kind::host);
  EXPECT_EQ(room.account->bytes(), 2 * object);
}

TEST_F(FoundPrefix, ANewAccountIsOpenedIfThereIsNone) {
  room.account = nullptr;
  auto prefix = found("##");
  lease(prefix, room);
  auto held = prefix.take_holds();
  EXPECT_EQ(leases->bytes(), 2 * object);
  held.clear();
  EXPECT_EQ(leases->bytes(), 0u);
}

TEST_F(FoundPrefix, NothingIsChargedOrHeldIfNothingIsFound) {
  auto prefix = found(".###");
  lease(prefix, room);
  EXPECT_EQ(host_tier->released, ids({2, 3, 4}));
  EXPECT_TRUE(accesses(prefix)[0].empty());
  EXPECT_TRUE(prefix.take_holds().empty());
  EXPECT_EQ(leases->bytes(), 0u);
}

TEST_F(FoundPrefix, ALeaseEndsWhereTheRoomDoes) {
  auto prefix = found("############");
  lease(prefix, room);
  EXPECT_TRUE(prefix.shortened());
  EXPECT_EQ(prefix.plan().found_chunks, 9u);
  EXPECT_EQ(prefix.plan().requested_chunks, 12u);
  EXPECT_EQ(room.account->bytes(), 9 * object);
}

TEST_F(FoundPrefix, WhatDoesNotFitIsHeldBelow) {
  auto prefix = found("############", "############");
  lease(prefix, room);
  EXPECT_FALSE(prefix.shortened());
  EXPECT_EQ(prefix.plan().found_chunks, 12u);
  auto held = prefix.take_holds();
  EXPECT_EQ(kept(held_in(held, tier_kind::host)), "######......");
  EXPECT_EQ(kept(held_in(held, tier_kind::disk)), "############");
  EXPECT_EQ(room.account->bytes(), 6 * object);
}

TEST_F(FoundPrefix, WhatOnlyTheDiskHoldsHasRoomOfItsOwn) {
  auto prefix = found("...###", "###...");
  lease(prefix, room);
  EXPECT_FALSE(prefix.shortened()) << "leases may hold six";
  EXPECT_EQ(prefix.plan().found_chunks, 6u);
  EXPECT_EQ(room.account->bytes(), 3 * object) << "what is not in host memory is not charged";
  auto longer = found("....####", "####....");
  lease(longer, room);
  EXPECT_TRUE(longer.shortened());
}

TEST_F(FoundPrefix, WhatIsLeasedAlreadyIsFoundHoweverLittleRoomThereIs) {
  auto in_host = found("#########");
  lease(in_host, {leases, leases->open(), 1000 * object});
  auto all = found("...######", "###......");
  lease(all, {leases, leases->open(), 0});
  EXPECT_EQ(all.plan().found_chunks, 9u);
  EXPECT_FALSE(all.shortened());
}

TEST_F(FoundPrefix, ALongPrefixIsLeasedInSteps) {
  size_t objects = 2 * found_prefix::step_objects + 1;
  room.host_bytes = 4 * objects * object;
  auto prefix = found(std::string(objects, '#'));
  int steps = 1;
  for (; prefix.lease_some(room); ++steps)
    EXPECT_EQ(prefix.plan().found_chunks, objects);
  EXPECT_EQ(steps, 6) << "three to count, three to charge";
  EXPECT_EQ(room.account->bytes(), objects * object);
  auto held = prefix.take_holds();
  EXPECT_EQ(held[0].held->places().size(), objects);
  held.clear();
  EXPECT_EQ(leases->bytes(), 0u);
  EXPECT_EQ(host_tier->released.size(), objects);
}

TEST_F(FoundPrefix, ALeaseThatIsNotCompletedHoldsNothing) {
  size_t objects = 3 * found_prefix::step_objects;
  room.host_bytes = 4 * objects * object;
  for (int steps = 1; steps < 6; ++steps) {
    {
      auto prefix = found(std::string(objects, '#'));
      for (int i = 0; i < steps; ++i)
        EXPECT_TRUE(prefix.lease_some(room));
    }
    EXPECT_EQ(room.account->bytes(), 0u) << "claims included";
    EXPECT_EQ(leases->bytes(), 0u);
    EXPECT_EQ(std::exchange(host_tier->released, {}).size(), objects);
  }
}

/// Records the most objects that a step of the lease released.
struct FoundInSteps : FoundPrefix {
  size_t released_at_most = 0;

  void lease_counting(found_prefix& prefix) {
    for (bool more = true; more;) {
      size_t before = host_tier->released.size() + disk_tier->released.size();
      more = prefix.lease_some(room);
      released_at_most =
          std::max(released_at_most, host_tier->released.size() + disk_tier->released.size() - before);
    }
  }
};

TEST_F(FoundInSteps, StatesThatNoWindowNeedsAreReleasedInParts) {
  constexpr size_t chunks = 3 * found_prefix::released_objects;
  spec.pools.push_back({.name = "state", .object_bytes = 1 << 20, .rule = hit_rule::trailing_chunks});
  room.host_bytes = 8 * chunks * object;
  auto prefix = found(std::string(2 * chunks, '#'));
  ASSERT_EQ(prefix.plan().found_chunks, chunks);
  lease_counting(prefix);
  EXPECT_EQ(host_tier->released.size(), chunks - 1);
  EXPECT_LE(released_at_most, found_prefix::released_objects);
  EXPECT_FALSE(prefix.shortened());
  EXPECT_EQ(room.account->bytes(), (chunks + 1) * object);
}

TEST_F(FoundInSteps, WhatHasNoStateIsReleasedInParts) {
  constexpr size_t chunks = 3 * found_prefix::released_objects;
  spec.pools.push_back({.name = "state", .object_bytes = 1 << 20, .rule = hit_rule::trailing_chunks});
  std::string has;
  for (size_t i = 0; i < chunks; ++i)
    has += "#.";
  auto prefix = found(has);
  EXPECT_EQ(prefix.plan().found_chunks, 0u);
  lease_counting(prefix);
  EXPECT_EQ(host_tier->released.size(), chunks);
  EXPECT_LE(released_at_most, found_prefix::released_objects);
  EXPECT_TRUE(prefix.take_holds().empty());
}

TEST_F(FoundInSteps, WhatDoesNotFitIsReleasedInParts) {
  constexpr size_t chunks = 5 * found_prefix::released_objects, fits = chunks / 5;
  room.host_bytes = fits * object * 16 / 9; // a connection gets 9 of 16
  auto prefix = found(std::string(chunks, '#'));
  lease_counting(prefix);
  EXPECT_TRUE(prefix.shortened());
  EXPECT_NEAR(static_cast<double>(prefix.plan().found_chunks), fits, 1);
  EXPECT_EQ(host_tier->released.size(), chunks - prefix.plan().found_chunks);
  EXPECT_LE(released_at_most, found_prefix::released_objects);
  EXPECT_EQ(room.account->bytes(), prefix.plan().found_chunks * object);
}

TEST_F(FoundInSteps, WhatIsHeldBelowIsReleasedInHostMemoryInParts) {
  constexpr size_t chunks = 5 * found_prefix::released_objects;
  room.host_bytes = found_prefix::released_objects * object;
  auto prefix = found(std::string(chunks, '#'), std::string(chunks, '#'));
  lease_counting(prefix);
  EXPECT_FALSE(prefix.shortened());
  EXPECT_EQ(prefix.plan().found_chunks, chunks);
  EXPECT_LE(released_at_most, found_prefix::released_objects);
  auto held = prefix.take_holds();
  EXPECT_EQ(count_present(held_in(held, tier_kind::disk)->places()), chunks);
  EXPECT_EQ(room.account->bytes(), count_present(held_in(held, tier_kind::host)->places()) * object);
}

TEST_F(FoundInSteps, CopiesBelowAreReleasedInParts) {
  constexpr size_t chunks = 4 * found_prefix::released_objects;
  room.host_bytes = 16 * chunks * object;
  room.below_bytes[static_cast<size_t>(tier_kind::disk)] =
      chunks / 3 * 16 / 9 * object; // it may hold a third
  held_on_disk = chunks * object;
  auto prefix = found(std::string(chunks, '#'), std::string(chunks, '#'));
  lease_counting(prefix);
  EXPECT_EQ(prefix.plan().found_chunks, chunks);
  EXPECT_FALSE(prefix.shortened());
  EXPECT_LE(released_at_most, found_prefix::released_objects);
  EXPECT_GE(disk_tier->released.size(), chunks / 2);
  EXPECT_TRUE(host_tier->released.empty());
}

TEST_F(FoundPrefix, AShortPrefixIsLeasedInOneStep) {
  auto prefix = found("####");
  EXPECT_FALSE(prefix.lease_some(room));
  EXPECT_EQ(room.account->bytes(), 4 * object);
}

TEST_F(FoundPrefix, StatesThatNoWindowNeedsAreReleased) {
  spec.pools.push_back({.name = "state", .object_bytes = 1 << 20, .rule = hit_rule::trailing_chunks});
  auto prefix = found("######");
  lease(prefix, room);
  EXPECT_EQ(prefix.plan().found_chunks, 3u);
  EXPECT_EQ(accesses(prefix)[0], ids({1, 3, 5, 6}));
  EXPECT_EQ(host_tier->released, ids({2, 4}));
}

TEST_F(FoundPrefix, WhatIsHeldBelowAloneIsNotCharged) {
  auto in = std::make_shared<opened_space>(opened_space{space_id{1}, spec, spec.fingerprint()});
  planned prefix({in, {3, 0, UINT64_MAX}, true, true}, {share(tier_kind::disk, "##.")}, 3);
  lease(prefix, room);
  EXPECT_EQ(accesses(prefix)[0], ids({101, 102}));
  EXPECT_EQ(prefix.take_holds().front().tier, tier_kind::disk);
  EXPECT_EQ(leases->bytes(), 0u);
}

/// A disk for 16 objects, of which leases may hold 12, and one connection 9.
struct FoundBelow : FoundPrefix {
  FoundBelow() { room.below_bytes[static_cast<size_t>(tier_kind::disk)] = 16 * object; }

  /// Finds the prefix while leases hold `held` objects of the disk, these included.
  planned found_while(size_t held, const std::string& host, const std::string& disk) {
    held_on_disk = held * object;
    return found(host, disk);
  }
};

TEST_F(FoundBelow, ALeaseEndsWhereItWouldHoldTooMuchOfTheDisk) {
  auto prefix = found_while(12, "............", "############");
  lease(prefix, room);
  EXPECT_EQ(prefix.plan().found_chunks, 9u);
  EXPECT_EQ(prefix.plan().requested_chunks, 12u);
  EXPECT_TRUE(prefix.shortened());
  auto held = prefix.take_holds();
  ASSERT_NE(held_in(held, tier_kind::disk), nullptr);
  EXPECT_EQ(kept(held_in(held, tier_kind::disk)), "#########");
  EXPECT_EQ(disk_tier->released, ids({110, 111, 112}));
  EXPECT_EQ(room.account->bytes_below(tier_kind::disk), 9 * object);
  held.clear();
  EXPECT_EQ(room.account->bytes_below(tier_kind::disk), 0u);
}

TEST_F(FoundBelow, CopiesOfWhatHostMemoryHoldsAreGivenUpFirst) {
  auto prefix = found_while(12, "####........", "############");
  lease(prefix, room);
  EXPECT_EQ(prefix.plan().found_chunks, 12u);
  EXPECT_FALSE(prefix.shortened());
  auto held = prefix.take_holds();
  EXPECT_EQ(kept(held_in(held, tier_kind::host)).substr(0, 4), "####");
  EXPECT_EQ(kept(held_in(held, tier_kind::disk)), "#...########");
  EXPECT_EQ(room.account->bytes_below(tier_kind::disk), 9 * object);
}

TEST_F(FoundBelow, OthersLeaveAShare) {
  auto prefix = found_while(12, "....", "####"); // others hold eight
  lease(prefix, room);
  EXPECT_EQ(prefix.plan().found_chunks, 3u);
  auto next = found_while(12, ".", "#");
  lease_room other{leases, leases->open(), room.host_bytes, room.below_bytes};
  lease(next, other);
  EXPECT_EQ(next.plan().found_chunks, 0u);
  EXPECT_TRUE(next.shortened());
}

TEST_F(FoundBelow, WithinItsShareNothingIsCut) {
  auto prefix = found_while(9, ".........", "#########");
  lease(prefix, room);
  EXPECT_EQ(prefix.plan().found_chunks, 9u);
  EXPECT_FALSE(prefix.shortened());
}

TEST_F(FoundPrefix, WithoutAHoldThereIsOnlyThePlan) {
  hold = false;
  auto prefix = found("##.");
  lease(prefix, room);
  EXPECT_EQ(prefix.plan().found_chunks, 2u);
  EXPECT_TRUE(prefix.take_holds().empty());
}

TEST_F(FoundPrefix, NothingIsKnownBehindWhatWasSearched) {
  spec.world_size = 2;
  ranks = std::make_shared<rank_presence>(2);
  { rank_presence::member gone(ranks, 1); }
  auto in = std::make_shared<opened_space>(opened_space{space_id{1}, spec, spec.fingerprint()});
  in->ranks = ranks;
  // Three chunks are requested; the search ended inside the second.
  planned prefix({in, {3, 0, UINT64_MAX}, true, false}, {share(tier_kind::host, "###...")}, 3);
  EXPECT_EQ(prefix.plan().found_chunks, 1u);
  EXPECT_EQ(prefix.plan().requested_chunks, 3u);
  EXPECT_FALSE(prefix.next_unusable());
}

TEST_F(FoundPrefix, NamesTheFirstMissingObjectWhereNoTierWasSearched) {
  auto in = std::make_shared<opened_space>(opened_space{space_id{1}, spec, spec.fingerprint()});
  planned prefix({in, {3, 0, UINT64_MAX}, true, false}, {}, 0);
  EXPECT_EQ(prefix.plan().found_chunks, 0u);
  ASSERT_TRUE(prefix.plan().missing);
  EXPECT_EQ(prefix.plan().missing->chunk, 0u);
}

TEST_F(FoundPrefix, NamesWhatNobodyCanComplete) {
  spec.world_size = 2;
  ranks = std::make_shared<rank_presence>(2);
  { rank_presence::member gone(ranks, 1); }
  auto prefix = found("###...#.", "#...#...");
  EXPECT_EQ(prefix.plan().found_chunks, 1u);
  auto gone = prefix.next_unusable();
  ASSERT_TRUE(gone);
  ASSERT_EQ(gone->size(), 2u);
  EXPECT_EQ((*gone)[0].why, discard_reason::unusable);
  EXPECT_EQ((*gone)[0].ids, ids({3, 7}));
  EXPECT_EQ((*gone)[1].ids, ids({105}));
  EXPECT_FALSE(prefix.next_unusable());
  hold = false;
  EXPECT_FALSE(found("###...#.").next_unusable());
}

TEST_F(FoundPrefix, AccessesOfALongChainComeInPartsFromItsEnd) {
  constexpr size_t step = found_prefix::step_objects;
  room.host_bytes = 4 * step * object;
  auto prefix = found(std::string(2 * step + 1, '#'));
  lease(prefix, room);
  ASSERT_EQ(prefix.plan().found_chunks, 2 * step + 1);
  auto last = prefix.next_accesses();
  ASSERT_TRUE(last);
  ASSERT_EQ((*last)[0].ids.size(), step);
  EXPECT_EQ((*last)[0].ids.back(), object_id{2 * step + 1});
  EXPECT_EQ((*last)[0].ids.front(), object_id{step + 2}) << "a part is in order";
  EXPECT_EQ((*prefix.next_accesses())[0].ids.front(), object_id{2});
  EXPECT_EQ((*prefix.next_accesses())[0].ids, ids({1}));
  EXPECT_FALSE(prefix.next_accesses());
}

TEST_F(FoundPrefix, UnusableObjectsOfALongChainComeInParts) {
  constexpr size_t step = found_prefix::step_objects;
  spec.world_size = 2;
  ranks = std::make_shared<rank_presence>(2);
  { rank_presence::member gone(ranks, 1); }
  std::string host = "..";
  for (size_t i = 0; i < 2 * step; ++i)
    host += "#.";
  auto prefix = found(host);
  size_t parts = 0, objects = 0;
  for (auto gone = prefix.next_unusable(); gone; gone = prefix.next_unusable()) {
    ++parts;
    objects += (*gone)[0].ids.size();
  }
  EXPECT_GE(parts, 2u);
  EXPECT_EQ(objects, 2 * step);
}

// ---- chunks that are left to the client ----

namespace {

struct FoundPrefixAtASpeed : FoundPrefix {
  recompute_terms terms{.tokens_per_s = 64'000}; // a chunk in 1 ms

  /// The disk reads an object in `object_ms` milliseconds.
  static void leave(found_prefix& prefix, recompute_terms terms, double object_ms) {
    terms.tiers[static_cast<size_t>(tier_kind::disk)] =
        read_state{.bytes_per_s = object * 1000.0 / object_ms};
    while (prefix.leave_some(terms))
      ;
  }
};

} // namespace

TEST_F(FoundPrefixAtASpeed, WhatTheClientComputesFasterIsNotFoundNorHeldNorAccessed) {
  auto prefix = found("##......", "..######");
  leave(prefix, terms, 2);
  EXPECT_EQ(prefix.plan().found_chunks, 2u);
  EXPECT_EQ(prefix.plan().usable_chunks, 2u);
  EXPECT_FALSE(prefix.plan().missing);
  EXPECT_EQ(prefix.recompute_chunks(), 6u);
  EXPECT_EQ(disk_tier->released, ids({103, 104, 105, 106, 107, 108}));
  lease(prefix, room);
  EXPECT_FALSE(prefix.shortened());
  auto used = accesses(prefix);
  EXPECT_EQ(used[0], ids({1, 2}));
  EXPECT_TRUE(used[1].empty());
  EXPECT_EQ(prefix.held_bytes(), 2 * object);
}

TEST_F(FoundPrefixAtASpeed, AFasterDiskIsOfferedWhole) {
  auto prefix = found("##......", "..######");
  leave(prefix, terms, 0.5);
  EXPECT_EQ(prefix.plan().found_chunks, 8u);
  EXPECT_EQ(prefix.recompute_chunks(), 0u);
  EXPECT_TRUE(disk_tier->released.empty());
}

TEST_F(FoundPrefixAtASpeed, WhatIsAllInHostMemoryIsLeftAsItIs) {
  auto prefix = found("####", "####");
  leave(prefix, terms, 1000);
  EXPECT_EQ(prefix.plan().found_chunks, 4u);
  EXPECT_EQ(prefix.recompute_chunks(), 0u);
}

TEST_F(FoundPrefixAtASpeed, WithoutALeaseOnlyThePlanIsShorter) {
  hold = false;
  auto prefix = found("#...", "####");
  leave(prefix, terms, 2);
  EXPECT_EQ(prefix.plan().found_chunks, 1u);
  EXPECT_EQ(prefix.recompute_chunks(), 3u);
  EXPECT_TRUE(prefix.take_holds().empty());
}
