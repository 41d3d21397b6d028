// Tests what a tier tells its policy, and what it keeps while the policy is behind.
#include "tier/objects/tier_changes.hpp"

#include "tests/support/seed.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <random>

using namespace terrace;
using namespace terrace::test;

namespace {

entry_key name(uint64_t number) { return to_entry_key(key_of(number)); }

policy_notes batch(std::vector<policy_note> notes, uint64_t inference = 0) {
  return {tier_kind::host, std::move(notes), inference};
}

using told_list = std::vector<std::pair<note_kind, entry_key>>;

told_list told(const std::vector<policy_notes>& batches) {
  told_list out;
  for (const policy_notes& one : batches)
    for (const policy_note& note : one.notes)
      out.emplace_back(note.kind, note.key);
  return out;
}

/// A line without credit: as many marks are outstanding as are allowed.
struct NoteQueue : ::testing::Test {
  note_queue line;

  size_t use_up_credit() {
    size_t sent = 0;
    for (policy_notes one = batch({{note_kind::hit, name(0), {}}}); line.admits(one); ++sent)
      line.mark_due();
    line.take(); // takes the note that was kept
    return sent;
  }
  void keep(std::vector<policy_note> notes, uint64_t inference = 0) {
    auto one = batch(std::move(notes), inference);
    ASSERT_FALSE(line.admits(one));
  }
};

/// The state that a policy derives from notes: which objects are there and held, in the order of last use.
struct naive_order {
  std::list<entry_key> order;
  std::map<entry_key, bool> held;

  void apply(const policy_note& note) {
    bool there = held.contains(note.key);
    switch (note.kind) {
      case note_kind::insert:
        if (!there)
          order.push_back(note.key), held[note.key] = false;
        break;
      case note_kind::evict:
      case note_kind::erase: order.remove(note.key), held.erase(note.key); break;
      case note_kind::hit:
        if (there)
          order.remove(note.key), order.push_back(note.key);
        break;
      case note_kind::pin:
      case note_kind::unpin:
        if (there)
          held[note.key] = note.kind == note_kind::pin;
        break;
    }
  }
  friend bool operator==(const naive_order&, const naive_order&) = default;
};

} // namespace

TEST_F(NoteQueue, SendsAsManyBatchesAsItHasCreditFor) {
  EXPECT_EQ(use_up_credit(), note_queue::batches_between_marks * note_queue::marks_max);
}

TEST_F(NoteQueue, AsksForAMarkBehindEveryFewBatches) {
  size_t marks = 0;
  for (size_t i = 0; i < note_queue::batches_between_marks; ++i) {
    auto one = batch({{note_kind::hit, name(0), {}}});
    ASSERT_TRUE(line.admits(one));
    EXPECT_EQ(one.notes.size(), 1u) << "what may be sent is left alone";
    marks += line.mark_due();
  }
  EXPECT_EQ(marks, 1u);
}

TEST_F(NoteQueue, SendsAgainWhenAMarkIsBack) {
  use_up_credit();
  line.marked();
  auto one = batch({{note_kind::hit, name(0), {}}});
  EXPECT_TRUE(line.admits(one));
}

TEST_F(NoteQueue, KeepsTheOrderBehindWhatIsKept) {
  use_up_credit();
  keep({{note_kind::insert, name(1), {}}});
  line.marked();
  auto one = batch({{note_kind::erase, name(1), {}}});
  EXPECT_FALSE(line.admits(one)) << "it would overtake what is kept";
  EXPECT_EQ(told(line.take()), (told_list{{note_kind::insert, name(1)}, {note_kind::erase, name(1)}}));
}

TEST_F(NoteQueue, ALaterUseTakesThePlaceOfAnEarlierOne) {
  use_up_credit();
  for (int i = 0; i < 1000; ++i)
    keep({{note_kind::hit, name(1), {}}, {note_kind::hit, name(2), {}}});
  keep({{note_kind::hit, name(1), {}}});
  EXPECT_EQ(line.kept(), 2u);
  EXPECT_EQ(told(line.take()), (told_list{{note_kind::hit, name(2)}, {note_kind::hit, name(1)}}));
}

TEST_F(NoteQueue, OfTwoRunsWithTheSameEndTheLongerIsKept) {
  use_up_credit();
  keep({{note_kind::hit, name(1), {}, 0, 7}});
  keep({{note_kind::hit, name(1), {}, 0, 3}});
  auto batches = line.take();
  ASSERT_EQ(batches.size(), 1u);
  ASSERT_EQ(batches[0].notes.size(), 1u);
  EXPECT_EQ(batches[0].notes[0].entries, 7u);
}

TEST_F(NoteQueue, AccessesBeyondABoundAreDroppedAndNothingElse) {
  use_up_credit();
  uint64_t number = 0;
  for (size_t kept = 0; kept < note_queue::kept_uses_max; kept += policy_note::entries_max)
    keep({{note_kind::hit, name(++number), {}, 0, policy_note::entries_max}});
  keep({{note_kind::hit, name(++number), {}}, {note_kind::insert, name(++number), {}}});
  EXPECT_EQ(line.kept(), number - 1);
  auto batches = line.take();
  ASSERT_FALSE(batches.empty());
  EXPECT_EQ(batches.back().notes.back().kind, note_kind::insert);
  line.marked();
  auto one = batch({{note_kind::hit, name(1), {}}});
  EXPECT_TRUE(line.admits(one)) << "the bound is for what is kept";
}

TEST_F(NoteQueue, OfHoldsAndReleasesTheLastCounts) {
  use_up_credit();
  keep({{note_kind::pin, name(1), {}}});
  keep({{note_kind::unpin, name(1), {}}});
  keep({{note_kind::pin, name(2), {}}});
  EXPECT_EQ(told(line.take()), (told_list{{note_kind::unpin, name(1)}, {note_kind::pin, name(2)}}));
}

TEST_F(NoteQueue, MergesNothingAcrossAnArrivalOrAnEnd) {
  use_up_credit();
  told_list all = {{note_kind::unpin, name(1)},
                   {note_kind::erase, name(1)},
                   {note_kind::insert, name(1)},
                   {note_kind::pin, name(1)}};
  for (auto [kind, key] : all)
    keep({{kind, key, {}}});
  EXPECT_EQ(told(line.take()), all);
}

TEST_F(NoteQueue, TellsForWhichInferenceEachObjectWasStored) {
  use_up_credit();
  keep({{note_kind::insert, name(1), {}, 10}}, 7);
  keep({{note_kind::hit, name(9), {}}});
  keep({{note_kind::insert, name(2), name(1), 20}}, 7);
  keep({{note_kind::insert, name(3), {}, 30}}, 8);
  auto batches = line.take();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].inference, 7u);
  EXPECT_EQ(batches[0].notes.size(), 3u);
  EXPECT_EQ(batches[0].notes[2].parent, name(1));
  EXPECT_EQ(batches[0].notes[2].bytes, 20u);
  EXPECT_EQ(batches[1].inference, 8u);
  EXPECT_EQ(batches[1].tier, tier_kind::host);
}

TEST_F(NoteQueue, TellsAPolicyThatIsBehindTheSameInTheEnd) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);
  use_up_credit();
  constexpr uint64_t objects = 20;
  naive_order at_once, behind;
  for (int step = 0; step < 5000; ++step) {
    policy_note note{static_cast<note_kind>(random() % 5), name(random() % objects), {}};
    if ((note.kind == note_kind::erase || note.kind == note_kind::insert) && random() % 8 != 0)
      note.kind = note_kind::hit;
    at_once.apply(note);
    keep({note});
    if (random() % 200 != 0)
      continue;
    for (const policy_notes& one : line.take())
      for (const policy_note& late : one.notes)
        behind.apply(late);
    ASSERT_EQ(behind, at_once) << "after step " << step;
    EXPECT_EQ(line.kept(), 0u);
  }
}

TEST_F(NoteQueue, KeepsNoMoreThanTwoNotesForEachObjectThatStays) {
  use_up_credit();
  for (uint64_t i = 0; i < 10'000; ++i) {
    auto kind = i % 3 == 0 ? note_kind::pin : i % 3 == 1 ? note_kind::unpin : note_kind::hit;
    keep({{kind, name(i % 7), {}}});
    ASSERT_LE(line.kept(), 14u);
  }
}
