#include "index/table_recount.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace {

/// Damages the totals of a table, as an error in it would.
struct damaged_table {
  static void counts_one_more(resident_table& table) { ++table.totals_.all.objects; }
  static void counts_one_more_readable(resident_table& table) { ++table.totals_.readable; }
  static void counts_a_held_one(resident_table& table) { ++table.totals_.held.objects; }
  static void counts_held_bytes(resident_table& table) { table.totals_.held.bytes += 4096; }
  static void counts_reserved_bytes(resident_table& table) { table.totals_.reserved_bytes += 4096; }
  static void counts_bytes_of(resident_table& table, uint32_t space) {
    table.totals_.by_space[space].bytes += 4096;
  }
  static void counts_objects_of(resident_table& table, uint32_t space) {
    ++table.totals_.by_space[space].objects;
  }
  static void unlinks(resident_table& table, object_id id) { table.unlink(resident_table::slot_of(id)); }
  static void removes_without_unlinking(resident_table& table, object_id id) {
    table.move(table.slots_[resident_table::slot_of(id)], object_state::removed);
  }
};

namespace {

object_id insert(resident_table& table, uint64_t number, uint32_t space = 1) {
  object_key key{static_cast<space_id>(space), 0, 0, {}};
  std::copy_n(reinterpret_cast<const uint8_t*>(&number), sizeof number, key.chunk.bytes.begin());
  return table.insert({key, {}, number * 8192, 8192, 5000, false});
}

std::vector<std::string> recount(resident_table& table) {
  table_recount walk(table);
  while (walk.step(3)) {
  }
  return differences_of(walk.totals(), table.totals());
}

/// A table with a published and a held object in each of two spaces, and one that is being written.
struct small_table {
  resident_table table;
  object_id first = insert(table, 1), second = insert(table, 2, 7), written = insert(table, 3);
  small_table() {
    for (object_id one : {first, second}) {
      table.publish(one);
      table.hold(one);
    }
  }
};

TEST(TableRecount, FindsNothingInATableThatIsRight) {
  small_table of;
  EXPECT_TRUE(recount(of.table).empty());
  for (uint32_t slot = 0; slot < of.table.slots(); ++slot)
    EXPECT_TRUE(of.table.indexed_rightly(slot));
}

TEST(TableRecount, NamesEachTotalThatIsWrong) {
  auto found = [](auto&& damage) {
    small_table of;
    damage(of.table);
    auto all = recount(of.table);
    return all.size() == 1 ? all.front() : std::to_string(all.size()) + " differences";
  };
  EXPECT_EQ(found(damaged_table::counts_one_more), "3 objects were counted, and the index keeps 4");
  EXPECT_EQ(found(damaged_table::counts_one_more_readable),
            "2 objects that lookups find were counted, and the index keeps 3");
  EXPECT_EQ(found(damaged_table::counts_a_held_one), "2 held objects were counted, and the index keeps 3");
  EXPECT_EQ(found(damaged_table::counts_held_bytes),
            "16384 bytes of held objects were counted, and the index keeps 20480");
  EXPECT_EQ(found(damaged_table::counts_reserved_bytes),
            "8192 bytes of objects being written were counted, and the index keeps 12288");
  EXPECT_EQ(found([](resident_table& table) { damaged_table::counts_bytes_of(table, 7); }),
            "8192 bytes of space 7 were counted, and the index keeps 12288");
  EXPECT_EQ(found([](resident_table& table) { damaged_table::counts_objects_of(table, 9); }),
            "0 objects of space 9 were counted, and the index keeps 1");
}

TEST(TableRecount, AnObjectThatTheIndexDoesNotLeadToIsFound) {
  small_table of;
  damaged_table::unlinks(of.table, of.second);
  EXPECT_TRUE(of.table.indexed_rightly(resident_table::slot_of(of.first)));
  EXPECT_FALSE(of.table.indexed_rightly(resident_table::slot_of(of.second)));
}

TEST(TableRecount, ARemovedObjectThatTheIndexStillLeadsToIsFound) {
  small_table of;
  damaged_table::removes_without_unlinking(of.table, of.first);
  EXPECT_FALSE(of.table.indexed_rightly(resident_table::slot_of(of.first)));
}

TEST(TableRecount, TellsWhatChangedSinceItBegan) {
  small_table of;
  table_recount walk(of.table);
  object_id later = insert(of.table, 4);
  of.table.release(of.first);
  EXPECT_TRUE(walk.touched(resident_table::slot_of(of.first)));
  EXPECT_FALSE(walk.touched(resident_table::slot_of(of.second)));
  EXPECT_TRUE(walk.touched(resident_table::slot_of(later)));
}

/// No difference is found, whatever happens between the steps.
TEST(TableRecount, CountsRightWhileTheTableChanges) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  resident_table table;
  std::vector<object_id> there;
  uint64_t number = 0;
  auto change = [&] {
    if (there.size() < 40 || (there.size() < 120 && random() % 3 == 0)) {
      there.push_back(insert(table, ++number, 1 + static_cast<uint32_t>(random() % 3)));
      return;
    }
    size_t at = random() % there.size();
    object_id id = there[at];
    const resident& object = *table.get(id);
    switch (object.state()) {
      case object_state::reserved:
        if (random() % 4 != 0)
          table.publish(id);
        else
          table.remove(id);
        return;
      case object_state::published:
        if (object.holds() != 0 && random() % 2 == 0)
          table.release(id);
        else if (random() % 3 != 0)
          table.hold(id);
        else if (random() % 2 == 0)
          table.demote(id);
        else
          table.remove(id);
        return;
      case object_state::demoting: table.keep(id); return;
      default:
        while (object.holds() != 0)
          table.release(id);
        table.erase(id);
        there.erase(there.begin() + static_cast<ptrdiff_t>(at));
    }
  };
  for (int round = 0; round < 200; ++round) {
    table_recount walk(table);
    do {
      for (size_t n = random() % 20; n != 0; --n)
        change();
    } while (walk.step(1 + static_cast<uint32_t>(random() % 8)));
    auto found = differences_of(walk.totals(), table.totals());
    ASSERT_TRUE(found.empty()) << found.front() << ", round " << round;
    for (uint32_t slot = 0; slot < table.slots(); ++slot)
      ASSERT_TRUE(table.indexed_rightly(slot));
  }
}

} // namespace
} // namespace terrace
