#include "index/resident_table.hpp"
#include "resident_keys.hpp"

#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

using namespace terrace;

namespace {

object_key key(uint64_t number) { return terrace::test::numbered_key(number); }

new_resident object(uint64_t number, uint64_t bytes = 4096) {
  return {key(number), {number, ~number}, number * 65536, bytes, bytes - 1};
}

object_id published(resident_table& table, uint64_t number) {
  object_id id = table.insert(object(number));
  table.publish(id);
  return id;
}

object_id find_published(const resident_table& table, uint64_t number) {
  object_key wanted = key(number);
  object_id id{};
  table.find_published({&wanted, 1}, {&id, 1});
  return id;
}

} // namespace

TEST(ResidentTable, AnObjectIsInvisibleUntilItIsPublished) {
  resident_table table;
  object_id id = table.insert(object(1));
  EXPECT_EQ(table.find(key(1)), id);
  EXPECT_EQ(find_published(table, 1), object_id{});
  EXPECT_EQ(table.published(), 0u);
  table.publish(id);
  EXPECT_EQ(find_published(table, 1), id);
  EXPECT_EQ(table.published(), 1u);
}

TEST(ResidentTable, CountsWhatLookupsFindNoLonger) {
  resident_table table;
  auto evicted = published(table, 1), cleared = published(table, 2), kept = published(table, 3);
  auto abandoned = table.insert(object(4));
  EXPECT_EQ(table.departures(), departure_counts{});
  table.erase(abandoned);
  table.demote(kept);
  table.keep(kept);
  EXPECT_EQ(table.departures(), departure_counts{}) << "lookups found it all the time";
  table.erase(evicted);
  EXPECT_EQ(table.departures(), (departure_counts{1, 0}));
  table.hold(cleared);
  table.remove(cleared);
  EXPECT_EQ(table.departures(), (departure_counts{2, 1}));
  table.release(cleared);
  table.erase(cleared);
  EXPECT_EQ(table.departures(), (departure_counts{2, 1})) << "once";
}

TEST(ResidentTable, IsFoundByItsPolicyNameToo) {
  resident_table table;
  object_id id = table.insert(object(7));
  EXPECT_EQ(table.find(to_entry_key(key(7))), id);
  EXPECT_EQ(table.get(id)->name(), to_entry_key(key(7)));
  EXPECT_FALSE(table.find(to_entry_key(key(8))));
}

TEST(ResidentTable, KeysThatDifferInOneFieldAreDifferentObjects) {
  resident_table table;
  object_id id = published(table, 1);
  object_key other = key(1);
  other.rank = 1;
  EXPECT_FALSE(table.find(other));
  other = key(1);
  other.pool = 1;
  EXPECT_FALSE(table.find(other));
  other = key(1);
  other.space = space_id{2};
  EXPECT_FALSE(table.find(other));
  EXPECT_EQ(table.find(key(1)), id);
}

TEST(ResidentTable, AnIdEndsWithItsStayAndIsNotUsedAgain) {
  resident_table table;
  object_id first = published(table, 1);
  table.erase(first);
  EXPECT_EQ(table.get(first), nullptr);
  EXPECT_FALSE(table.find(key(1)));
  object_id second = published(table, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.get(first), nullptr);
  ASSERT_NE(table.get(second), nullptr);
  EXPECT_EQ(table.get(second)->key(), key(1));
}

TEST(ResidentTable, IdZeroAndUnknownIdsNameNothing) {
  resident_table table;
  EXPECT_EQ(table.get(object_id{}), nullptr);
  EXPECT_EQ(table.get(object_id{uint64_t{1} << 32 | 5}), nullptr);
  published(table, 1);
  EXPECT_EQ(table.get(object_id{}), nullptr); // slot 0 is taken, but its generation is not 0
}

TEST(ResidentTable, CountsFirstAndLastHolds) {
  resident_table table;
  object_id id = published(table, 1);
  table.hold(id);
  table.hold(id);
  EXPECT_EQ(table.totals().held.objects, 1u);
  EXPECT_FALSE(table.release(id));
  EXPECT_EQ(table.totals().held.objects, 1u);
  EXPECT_TRUE(table.release(id));
  EXPECT_EQ(table.totals().held.objects, 0u);
}

TEST(ResidentTable, RemembersThatThePolicyKnowsIt) {
  resident_table table;
  object_id id = published(table, 1);
  EXPECT_FALSE(table.get(id)->pinned());
  EXPECT_FALSE(table.set_pinned(id, false));
  EXPECT_TRUE(table.set_pinned(id, true));
  EXPECT_FALSE(table.set_pinned(id, true));
  table.hold(id);
  EXPECT_EQ(table.get(id)->holds(), 1u);
  EXPECT_TRUE(table.get(id)->pinned());
  table.release(id);
  table.erase(id);
  EXPECT_FALSE(table.get(published(table, 2))->pinned()) << "the slot is another object's";
}

TEST(ResidentTable, ARemovedObjectLivesOnUntilItsLastHoldButIsNotFound) {
  resident_table table;
  object_id id = published(table, 1);
  table.hold(id);
  table.remove(id);
  EXPECT_FALSE(table.find(key(1)));
  EXPECT_EQ(find_published(table, 1), object_id{});
  ASSERT_NE(table.get(id), nullptr);
  EXPECT_EQ(table.get(id)->state(), object_state::removed);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.published(), 0u);
}

TEST(ResidentTable, AKeyMayComeBackWhileItsRemovedObjectLives) {
  resident_table table;
  object_id old = published(table, 1);
  table.hold(old);
  table.remove(old);
  object_id fresh = published(table, 1);
  EXPECT_NE(old, fresh);
  EXPECT_EQ(find_published(table, 1), fresh);
  table.release(old);
  table.erase(old);
  EXPECT_EQ(find_published(table, 1), fresh); // the end of the old object did not remove the new one
  EXPECT_EQ(table.size(), 1u);
}

TEST(ResidentTable, KeepsPlacesAndSizesToTheirBounds) {
  resident_table table;
  new_resident large = object(1);
  large.key.pool = 255;
  large.key.rank = 1023;
  large.offset = ((1ULL << 40) - 1) * 4096;
  large.physical_bytes = ((1ULL << 23) - 1) * 4096;
  large.payload_bytes = UINT32_MAX;
  large.trailing = true;
  const resident* kept = table.get(table.insert(large));
  EXPECT_EQ(kept->key(), large.key);
  EXPECT_EQ(kept->offset(), large.offset);
  EXPECT_EQ(kept->physical_bytes(), large.physical_bytes);
  EXPECT_EQ(kept->payload_bytes(), large.payload_bytes);
  EXPECT_TRUE(kept->trailing());
}

TEST(ResidentTableDeathTest, RefusesWhatItCannotKeep) {
  resident_table table;
  new_resident odd = object(1);
  odd.offset = 100;
  EXPECT_DEATH(table.insert(odd), "offset");
  new_resident large = object(1);
  large.payload_bytes = 1ULL << 32;
  EXPECT_DEATH(table.insert(large), "payload");
}

TEST(ResidentTable, KnowsAParentUntilThePolicyDoes) {
  resident_table table;
  object_id first = table.insert(object(1));
  object_id second = table.insert(object(2));
  EXPECT_EQ(table.parent_of(first), (entry_key{1, ~uint64_t{1}}));
  table.publish(first);
  EXPECT_TRUE(table.parent_of(first).empty());
  table.erase(second);
  EXPECT_TRUE(table.parent_of(second).empty());
}

TEST(ResidentTable, AnObjectOnItsWayDownIsFoundAndHeldAndMayStayAfterAll) {
  resident_table table;
  object_id id = published(table, 1);
  table.demote(id);
  EXPECT_EQ(find_published(table, 1), id);
  EXPECT_EQ(table.published(), 1u);
  table.hold(id);
  table.release(id);
  table.keep(id);
  EXPECT_EQ(table.get(id)->state(), object_state::published);
  table.demote(id);
  table.erase(id);
  EXPECT_EQ(table.published(), 0u);
}

TEST(ResidentTableDeathTest, AssertsThatAMoveIsAllowed) {
  resident_table table;
  object_id id = table.insert(object(1));
  EXPECT_DEATH(table.demote(id), "may_move");
  table.publish(id);
  EXPECT_DEATH(table.publish(id), "reserved");
  EXPECT_DEATH(table.keep(id), "demoting");
  table.remove(id);
  EXPECT_DEATH(table.demote(id), "may_move");
}

TEST(ResidentTable, CountsTheBytesThatAreHeldAndReserved) {
  resident_table table;
  object_id one = table.insert(object(1, 8192));
  object_id two = table.insert(object(2, 4096));
  EXPECT_EQ(table.totals().reserved_bytes, 12288u);
  table.publish(one);
  table.hold(one);
  table.hold(one);
  EXPECT_EQ(table.totals().reserved_bytes, 4096u);
  EXPECT_EQ(table.totals().held.bytes, 8192u);
  table.release(one);
  table.remove(one);
  EXPECT_EQ(table.totals().held.bytes, 8192u);
  table.release(one);
  table.erase(two);
  EXPECT_EQ(table.totals().held.bytes, 0u);
  EXPECT_EQ(table.totals().reserved_bytes, 0u);
}

TEST(ResidentTable, TakesNoMoreThanEightyBytesAnObject) {
  resident_table table;
  for (uint64_t n = 0; n < 500'000; ++n)
    published(table, n);
  EXPECT_LE(table.allocated_bytes(), 500'000u * 80);
  for (uint64_t n = 0; n < 500'000; n += 997)
    ASSERT_NE(find_published(table, n), object_id{});
}

TEST(ResidentTable, WithRoomMadeAheadIsLikeAnyOther) {
  resident_table ahead, other;
  ahead.reserve(1'000);
  for (uint64_t number = 0; number < 3'000; ++number) { // more objects than expected
    published(ahead, number);
    published(other, number);
  }
  for (uint64_t number = 0; number < 4'000; ++number) {
    EXPECT_EQ(find_published(ahead, number), find_published(other, number));
    EXPECT_EQ(ahead.find(key(number)), other.find(key(number)));
  }
  for (uint32_t slot = 0; slot < ahead.slots(); ++slot)
    EXPECT_TRUE(ahead.indexed_rightly(slot));
}

TEST(ResidentTable, FindsManyAtOnceInTheirOrder) {
  resident_table table;
  std::vector<object_key> keys;
  std::vector<object_id> expected;
  for (uint64_t n = 0; n < 100; ++n) {
    keys.push_back(key(n));
    expected.push_back(n % 3 == 0 ? published(table, n) : object_id{});
    if (n % 3 == 1)
      table.insert(object(n)); // reserved
  }
  std::vector<object_id> found(keys.size(), object_id{99});
  table.find_published(keys, found);
  EXPECT_EQ(found, expected);
}

TEST(ResidentTable, FindsManyLikeOneByOneHoweverTheyLie) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);
  constexpr uint64_t numbers = 600;
  resident_table table;
  for (uint64_t n = 0; n < numbers; ++n)
    published(table, n); // side by side
  for (int i = 0; i < 60; ++i) {
    uint64_t n = random() % numbers;
    auto id = table.find(key(n));
    if (id && table.get(*id)->state() != object_state::published)
      continue;
    switch (id ? random() % 4 : 4) {
      case 0: table.erase(*id); break;
      case 1: table.remove(*id); break;
      case 2: table.demote(*id); break;
      case 3: // elsewhere, and not readable
        table.erase(*id);
        table.insert(object(n));
        break;
      default: published(table, n);
    }
  }
  for (int round = 0; round < 2'000; ++round) {
    std::vector<object_key> keys;
    uint64_t next = random() % numbers;
    for (size_t count = random() % 200; keys.size() < count;) {
      keys.push_back(key(next));
      next = random() % 12 == 0 ? random() % (numbers + 20) : next + (random() % 40 == 0 ? -1 : 1);
    }
    std::vector<digest> chunks;
    std::vector<object_id> expected;
    for (const object_key& each : keys) {
      auto id = table.find(each);
      expected.push_back(id && readable(table.get(*id)->state()) ? *id : object_id{});
      chunks.push_back(each.chunk);
    }
    std::vector<object_id> found(keys.size(), object_id{99});
    table.find_published(keys, found);
    ASSERT_EQ(found, expected);
    found.assign(keys.size(), object_id{99});
    table.find_published(key(0), chunks, found); // all keys have the same space, pool and rank
    ASSERT_EQ(found, expected);
  }
}

TEST(ResidentTable, TellsChunksOfOtherSpacesPoolsAndRanksApart) {
  resident_table table;
  std::vector<digest> chunks;
  for (uint64_t n = 0; n < 40; ++n) {
    published(table, n);
    chunks.push_back(key(n).chunk);
  }
  object_key like = key(0), other_space = like, other_pool = like, other_rank = like;
  other_space.space = static_cast<space_id>(static_cast<uint32_t>(like.space) + 1);
  ++other_pool.pool;
  ++other_rank.rank;
  std::vector<object_id> found(chunks.size());
  for (const object_key& each : {other_space, other_pool, other_rank}) {
    found.assign(chunks.size(), object_id{99});
    table.find_published(each, chunks, found);
    EXPECT_EQ(found, std::vector<object_id>(chunks.size()));
  }
}

TEST(ResidentTable, BehavesLikeAMapUnderRandomUse) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);

  struct modelled {
    uint64_t number = 0;
    object_state state = object_state::reserved;
    uint32_t holds = 0;
  };
  resident_table table;
  std::map<object_id, modelled> model;
  std::map<uint64_t, object_id> index; // the objects that can be found
  auto any = [&](auto&& accept) -> std::map<object_id, modelled>::iterator {
    std::vector<std::map<object_id, modelled>::iterator> fit;
    for (auto entry = model.begin(); entry != model.end(); ++entry)
      if (accept(entry->second))
        fit.push_back(entry);
    return fit.empty() ? model.end() : fit[random() % fit.size()];
  };
  auto erase = [&](std::map<object_id, modelled>::iterator entry) {
    table.erase(entry->first);
    if (entry->second.state != object_state::removed)
      index.erase(entry->second.number);
    model.erase(entry);
  };

  for (int step = 0; step < 20'000; ++step) {
    uint64_t number = random() % 400; // few keys: the same ones meet often, and buckets fill up
    switch (random() % 7) {
      case 0:
      case 1:
        if (!index.contains(number)) {
          object_id id = table.insert(object(number));
          ASSERT_FALSE(model.contains(id)) << "an id was used again";
          model[id] = {number, object_state::reserved, 0};
          index[number] = id;
        }
        break;
      case 2:
        if (auto one = any([](const modelled& m) { return m.state == object_state::reserved; });
            one != model.end()) {
          table.publish(one->first);
          one->second.state = object_state::published;
        }
        break;
      case 3:
        if (auto one = any([](const modelled& m) { return m.state == object_state::published; });
            one != model.end()) {
          table.hold(one->first);
          ++one->second.holds;
        }
        break;
      case 4:
        if (auto one = any([](const modelled& m) { return m.holds != 0; }); one != model.end()) {
          ASSERT_EQ(table.release(one->first), one->second.holds == 1);
          if (--one->second.holds == 0 && one->second.state == object_state::removed)
            erase(one);
        }
        break;
      case 5:
        if (auto one = any([](const modelled& m) { return m.holds == 0; }); one != model.end())
          erase(one);
        break;
      case 6:
        if (auto one =
                any([](const modelled& m) { return m.state == object_state::published && m.holds != 0; });
            one != model.end()) {
          table.remove(one->first);
          one->second.state = object_state::removed;
          index.erase(one->second.number);
        }
        break;
    }
    auto entry = index.find(number);
    ASSERT_EQ(table.find(key(number)), entry == index.end() ? std::nullopt : std::optional(entry->second));
    if (step % 100 != 0)
      continue;
    size_t visible = 0;
    size_t held = 0;
    for (const auto& [id, expected] : model) {
      const resident* found = table.get(id);
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(found->key(), key(expected.number));
      ASSERT_EQ(found->state(), expected.state);
      ASSERT_EQ(found->holds(), expected.holds);
      ASSERT_EQ(found->offset(), expected.number * 65536);
      visible += expected.state == object_state::published;
      held += expected.holds != 0;
    }
    ASSERT_EQ(table.size(), model.size());
    ASSERT_EQ(table.totals().objects_of(key(0).space), model.size());
    ASSERT_EQ(table.totals().objects_of(static_cast<space_id>(static_cast<uint32_t>(key(0).space) + 1)), 0u);
    ASSERT_EQ(table.published(), visible);
    ASSERT_EQ(table.totals().held.objects, held);
    size_t walked = 0;
    table.for_each([&](const resident&) { ++walked; });
    ASSERT_EQ(walked, model.size());
  }
}
