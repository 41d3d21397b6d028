#include "storage/disk/path_journal.hpp"

#include "storage/volume_layout.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <utility>

using namespace terrace;

namespace {

constexpr uint64_t arena_begin = 1 << 20; // where the path begins in the tier's arena

superblock small_volume() {
  superblock block;
  block.volume.bytes = {1};
  block.epoch = 3;
  block.layout = layout_for(1 << 20);
  return block;
}

space_ptr space(uint32_t id) {
  auto spec = terrace::test::small_space();
  spec.model += std::to_string(id);
  return std::make_shared<const opened_space>(opened_space{space_id{id}, spec, spec.fingerprint()});
}

index_change change(uint32_t in, uint64_t number) {
  index_change made;
  made.space = space_id{in};
  made.record.generation = first_generation(3) + number;
  made.record.offset = arena_begin + number * 8192;
  made.record.physical_bytes = 8192;
  return made;
}

struct PathJournal : ::testing::Test {
  path_journal journal{small_volume(),
                       {.file = "/data/volume",
                        .in_arena = {arena_begin, 1 << 20},
                        .position = {},
                        .spaces = volume_spaces()}};

  /// Performs the operations that are due; returns the number of writes.
  size_t run(int32_t error = 0) {
    size_t writes = 0;
    journal.advance();
    while (auto io = journal.next()) {
      bool sync = io->wanted == journal_io::action::sync;
      writes += sync ? 0 : 1;
      journal.completed(error != 0 ? -error : sync ? 0 : static_cast<int32_t>(io->memory->size()));
      journal.advance();
    }
    return writes;
  }

  /// Afterwards the journal's next block makes a checkpoint due. Returns how many objects are recorded.
  uint64_t fill_almost_until_a_checkpoint_is_due() {
    uint64_t number = 0;
    for (; journal.fill() < 0.7; run())
      journal.add(index_changes{{change(1, number++)}, space(1)});
    return number;
  }

  forget_answer forget(forget_request request, bool durable = true) {
    std::optional<forget_answer> answer;
    journal.forget(request, [&](forget_answer done) { answer = std::move(done); });
    if (durable)
      run();
    return answer.value_or(forget_answer{{errc::busy, "waits"}, 0, {}});
  }
};

} // namespace

TEST_F(PathJournal, RecordsASpaceBeforeItsFirstObject) {
  journal.add(index_changes{{change(1, 0), change(1, 1)}, space(1)});
  EXPECT_EQ(journal.counts().records, 3u);
  journal.add(index_changes{{change(1, 2)}, space(1)});
  EXPECT_EQ(journal.counts().records, 4u);
  EXPECT_GT(run(), 0u);
}

TEST_F(PathJournal, OmitsObjectsOfSpacesThatWereNeverNamed) {
  journal.add(index_changes{{change(7, 0)}, nullptr});
  EXPECT_EQ(journal.counts().records, 0u);
}

TEST_F(PathJournal, NamesWhatTheIndexHasAndItWasNotToldOf) {
  journal_sums index;
  index.add(space_id{1}, first_generation(3) + 9);
  EXPECT_TRUE(journal.check(index).empty()) << "what was recorded before is not known";
  journal.has_recorded(index);
  index.add(space_id{1}, change(1, 0).record.generation);
  auto found = journal.check(index);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(
      found[0],
      "the journal of /data/volume differs: it was told of 1 objects of space 1, epoch 3, and the index "
      "has 2");
  journal.add(index_changes{{change(1, 0)}, space(1)});
  EXPECT_TRUE(journal.check(index).empty());
  auto removal = change(1, 0);
  removal.record.kind = record_kind::remove;
  journal.add(index_changes{{removal}, nullptr});
  EXPECT_EQ(journal.check(index).size(), 1u);
}

TEST_F(PathJournal, WhatItHasForgottenIsNotCompared) {
  journal.has_recorded({});
  journal_sums index;
  journal.add(index_changes{{change(1, 0)}, space(1)});
  index.add(space_id{1}, change(1, 0).record.generation);
  run();
  EXPECT_EQ(forget({space_id{1}, 3}).failure.code, errc::ok);
  EXPECT_TRUE(journal.check(index).empty())
      << "it may be served until it leaves, and is not found after a restart";
  EXPECT_TRUE(journal.check({}).empty());
}

TEST_F(PathJournal, ReportsTheFirstFailureAndTheFirstSuccessAfterIt) {
  journal.add(index_changes{{change(1, 0)}, space(1)});
  ASSERT_TRUE(journal.next());
  auto failing = journal.completed(-EIO);
  EXPECT_NE(failing.find("/data/volume cannot be written"), std::string::npos) << failing;
  journal.advance(); // a checkpoint, because records were lost
  ASSERT_TRUE(journal.image_wanted());
  journal.add(image_answer{{}, {change(1, 0)}, 0, true});
  ASSERT_TRUE(journal.next());
  EXPECT_EQ(journal.completed(-EIO), "");
  journal.add(index_changes{{change(1, 1)}, space(1)});
  journal.advance();
  if (journal.image_wanted())
    journal.add(image_answer{{}, {change(1, 0)}, 0, true});
  auto io = journal.next();
  ASSERT_TRUE(io);
  auto again = journal.completed(static_cast<int32_t>(io->memory ? io->memory->size() : 0));
  EXPECT_NE(again.find("can be written again"), std::string::npos) << again;
}

TEST_F(PathJournal, RecordsItsSpacesAgainOnceItCanBeWrittenAgain) {
  journal.add(index_changes{{change(1, 0)}, space(1)});
  ASSERT_TRUE(journal.next());
  journal.completed(-EIO); // the space's record is lost
  journal.advance();
  ASSERT_TRUE(journal.image_wanted());
  journal.add(image_answer{{}, {change(1, 0)}, 0, true});
  run(EIO); // the checkpoint fails, too
  EXPECT_EQ(journal.counts().records, 2u);
  journal.add(index_changes{{change(1, 1)}, space(1)});
  EXPECT_EQ(run(), 2u);
  EXPECT_EQ(journal.counts().records, 4u); // the object, and the space
  EXPECT_EQ(journal.counts().checkpoints, 0u);
  journal.add(index_changes{{change(1, 2)}, space(1)});
  EXPECT_EQ(run(), 1u);
  EXPECT_EQ(journal.counts().records, 5u); // once is enough
}

TEST_F(PathJournal, WhereOnlyCheckpointsFailNothingIsRecordedAgain) {
  journal.add(index_changes{{change(1, 0)}, space(1)});
  EXPECT_EQ(run(), 1u);
  journal.advance();
  journal.close();
  journal.advance();
  while (journal.image_wanted())
    journal.add(image_answer{{}, {change(1, 0)}, 0, true});
  run(EIO); // the checkpoint
  uint64_t before = journal.counts().records;
  journal.add(index_changes{{change(1, 1)}, space(1)});
  run();
  EXPECT_EQ(journal.counts().records, before + 1) << "the record of the space was written long ago";
}

TEST_F(PathJournal, AShortWriteIsAFailure) {
  journal.add(index_changes{{change(1, 0)}, space(1)});
  ASSERT_TRUE(journal.next());
  EXPECT_NE(journal.completed(512).find("short write"), std::string::npos);
}

TEST_F(PathJournal, ForgettingASpaceThatWasNeverWrittenNeedsNothing) {
  auto answer = forget({space_id{5}, 0}, false);
  EXPECT_EQ(answer.failure.code, errc::ok);
  EXPECT_EQ(answer.epoch, 3u);
}

TEST_F(PathJournal, ForgettingRaisesTheEpoch) {
  journal.add(index_changes{{change(1, 0)}, space(1)});
  auto answer = forget({space_id{1}, 0});
  EXPECT_EQ(answer.failure.code, errc::ok);
  EXPECT_EQ(answer.epoch, 4u);
}

TEST_F(PathJournal, ForgettingFailsIfTheDeviceDoesNotRespond) {
  std::optional<forget_answer> answer;
  journal.forget({std::nullopt, 0}, [&](forget_answer done) { answer = std::move(done); });
  ASSERT_TRUE(journal.next());
  EXPECT_FALSE(answer);
  journal.give_up_forgets();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->failure.code, errc::internal);
  EXPECT_NE(answer->failure.text.find("could not record it"), std::string::npos);
}

TEST_F(PathJournal, TheLastCheckpointAsksForTheWholeIndexInParts) {
  journal.add(index_changes{{change(1, 0), change(1, 1)}, space(1)});
  run();
  EXPECT_FALSE(journal.image_wanted());
  journal.close();
  EXPECT_TRUE(journal.closed() == false || journal.missing().code != errc::ok);
  run();
  auto first = journal.image_wanted();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->within.offset, arena_begin);
  EXPECT_EQ(first->first, 0u);
  EXPECT_FALSE(journal.image_wanted()); // an answer is awaited
  journal.add(image_answer{{}, {change(1, 0)}, 1024, false});
  auto second = journal.image_wanted();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->first, 1024u);
  journal.add(image_answer{{}, {change(1, 1)}, 2048, true});
  run();
  EXPECT_TRUE(journal.closed());
  EXPECT_EQ(journal.missing().code, errc::ok);
  EXPECT_EQ(journal.counts().checkpoints, 1u);
}

// Otherwise it would count objects as left out that the journal after it still has.
TEST_F(PathJournal, TheLastCheckpointBeginsWhenAllChangesAreRecorded) {
  journal.add(index_changes{{change(1, 0)}, space(1)});
  auto first = journal.next();
  ASSERT_TRUE(first);
  journal.add(index_changes{{change(1, 1)}, space(1)});
  journal.close();
  journal.advance();
  EXPECT_FALSE(journal.image_wanted()) << "a change waits for the write in progress";
  journal.completed(static_cast<int32_t>(first->memory->size()));
  journal.advance();
  EXPECT_FALSE(journal.image_wanted());
  run(); // its record
  ASSERT_TRUE(journal.image_wanted());
  journal.add(image_answer{{}, {change(1, 0), change(1, 1)}, 0, true});
  run();
  EXPECT_TRUE(journal.closed());
  EXPECT_EQ(journal.missing().code, errc::ok);
  EXPECT_EQ(journal.counts().checkpoints, 1u);
}

TEST_F(PathJournal, ACheckpointThatIsDueDuringTheShutdownDoesNotWaitForRecordsAndIsNotTheLast) {
  uint64_t number = fill_almost_until_a_checkpoint_is_due();
  journal.add(index_changes{{change(1, number++)}, space(1)});
  auto write = journal.next(); // three quarters of the journal
  ASSERT_TRUE(write);
  journal.add(index_changes{{change(1, number++)}, space(1)});
  journal.close();
  for (uint64_t expected : {1, 2}) {
    journal.advance();
    ASSERT_TRUE(journal.image_wanted());
    if (write)
      journal.completed(static_cast<int32_t>(std::exchange(write, std::nullopt)->memory->size()));
    EXPECT_FALSE(journal.closed());
    journal.add(image_answer{{}, {change(1, 0)}, 0, true});
    run();
    EXPECT_EQ(journal.counts().checkpoints, expected);
  }
  EXPECT_TRUE(journal.closed());
  EXPECT_EQ(journal.missing().code, errc::ok);
  EXPECT_EQ(journal.counts().lost, 0u);
}

TEST_F(PathJournal, IfACheckpointBeforeTheLastOneFailsTheLastOneStillContainsEverything) {
  uint64_t number = fill_almost_until_a_checkpoint_is_due();
  journal.add(index_changes{{change(1, number++)}, space(1)});
  auto write = journal.next();
  ASSERT_TRUE(write);
  journal.add(index_changes{{change(1, number++)}, space(1)});
  journal.close();
  journal.advance();
  ASSERT_TRUE(journal.image_wanted());
  journal.completed(static_cast<int32_t>(write->memory->size()));
  journal.add(image_answer{{}, {change(1, 0)}, 0, true});
  ASSERT_TRUE(journal.next()); // a write of the image, because records had the turn before
  EXPECT_FALSE(journal.completed(-EIO).empty());
  EXPECT_EQ(journal.counts().lost, 0u);
  run(); // the record that waits
  EXPECT_FALSE(journal.closed());
  ASSERT_TRUE(journal.image_wanted());
  journal.add(image_answer{{}, {change(1, 0)}, 0, true});
  run();
  EXPECT_TRUE(journal.closed());
  EXPECT_EQ(journal.missing().code, errc::ok);
  EXPECT_EQ(journal.counts().checkpoints, 1u);
}

TEST_F(PathJournal, ALastCheckpointBeginsAlthoughAFullJournalHasNoRoomForWhatWaits) {
  uint64_t number = fill_almost_until_a_checkpoint_is_due();
  while (journal.fill() < 1) { // the checkpoint that was due fails, and the next one is not due yet
    journal.add(index_changes{{change(1, number++)}, space(1)});
    run();
    if (journal.image_wanted()) {
      journal.add(image_answer{{}, {change(1, 0)}, 0, true});
      auto image = journal.next();
      ASSERT_TRUE(image);
      journal.completed(-EIO);
    }
  }
  journal.add(index_changes{{change(1, number++)}, space(1)});
  journal.close();
  journal.advance();
  // The second one contains the records that the journal lost.
  for (int part = 0; part < 2 && !journal.closed(); ++part) {
    ASSERT_TRUE(journal.image_wanted());
    journal.add(image_answer{{}, {change(1, 0)}, 0, true});
    run();
  }
  EXPECT_TRUE(journal.closed());
  EXPECT_EQ(journal.missing().code, errc::ok);
}

TEST_F(PathJournal, SaysIfTheLastCheckpointCouldNotBeWritten) {
  journal.add(index_changes{{change(1, 0)}, space(1)});
  run();
  journal.close();
  journal.advance();
  ASSERT_TRUE(journal.image_wanted());
  journal.add(image_answer{{}, {}, 0, true});
  run(EIO);
  EXPECT_TRUE(journal.closed());
  EXPECT_NE(journal.missing().text.find("/data/volume"), std::string::npos);
}
