#include "storage/index_journal.hpp"

#include "storage/volume_layout.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using action = journal_io::action;

superblock small_store() {
  superblock block;
  block.volume.bytes = {1};
  block.epoch = 3;
  block.layout = layout_for(1 << 20); // a journal of 16 blocks
  return block;
}

index_record record(uint64_t number) {
  index_record r;
  r.space = 1;
  r.generation = first_generation(3) + number;
  r.offset = number * 8192;
  r.physical_bytes = 8192;
  return r;
}

void add(index_journal& journal, size_t count) {
  for (size_t i = 0; i < count; ++i)
    journal.add(record(i));
}

/// Runs until nothing is left; returns the operations, in order.
std::vector<journal_io> run(index_journal& journal, bool good = true) {
  std::vector<journal_io> done;
  while (auto io = journal.next()) {
    done.push_back(*io);
    journal.completed(good);
  }
  return done;
}

class IndexJournal : public testing::Test {
 protected:
  const superblock block = small_store();
  const uint64_t blocks = block.layout.journal_bytes / record_block_bytes;
  index_journal journal{block, {}};

  block_view view_of(const journal_io& io, size_t which = 0) const {
    return read_block(block_kind::journal, block.volume,
                      std::span<const std::byte, record_block_bytes>(io.memory->data() + which * 4096, 4096));
  }
};

TEST_F(IndexJournal, HasNothingToDoWhenNothingHappened) {
  EXPECT_FALSE(journal.next());
  EXPECT_TRUE(journal.idle());
  EXPECT_FALSE(journal.changed());
}

TEST_F(IndexJournal, WritesTogetherWhatHappenedDuringAWrite) {
  add(journal, 1);
  auto first = journal.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->memory->size(), record_block_bytes);
  add(journal, 2 * records_per_block);
  EXPECT_FALSE(journal.next()) << "one operation at a time";
  journal.completed(true);
  auto second = journal.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->memory->size(), 2 * record_block_bytes);
  EXPECT_EQ(view_of(*second, 1).heading.sequence, 3u);
  EXPECT_EQ(view_of(*second, 1).records, records_per_block);
}

TEST_F(IndexJournal, PutsEachBlockWhereItsNumberSays) {
  index_journal later(block, {.next_sequence = 2 * blocks - 1, .live_from = 2 * blocks - 1});
  add(later, 3 * records_per_block);
  auto done = run(later);
  ASSERT_EQ(done.size(), 2u) << "the ring's end cuts a write";
  EXPECT_EQ(done[0].file_offset, block.layout.journal_begin + (blocks - 1) * record_block_bytes);
  EXPECT_EQ(done[0].memory->size(), record_block_bytes);
  EXPECT_EQ(done[1].file_offset, block.layout.journal_begin);
  EXPECT_EQ(done[1].memory->size(), 2 * record_block_bytes);
}

TEST_F(IndexJournal, WantsACheckpointWhenItIsThreeQuartersFull) {
  for (size_t b = 1; b < blocks * 3 / 4; ++b) {
    add(journal, 1);
    run(journal);
  }
  EXPECT_FALSE(journal.checkpoint_due());
  add(journal, 1);
  run(journal);
  EXPECT_TRUE(journal.checkpoint_due());
}

TEST_F(IndexJournal, NeverOverwritesABlockThatARecoveryNeeds) {
  for (size_t b = 0; b < blocks; ++b) {
    add(journal, 1);
    EXPECT_EQ(run(journal).size(), 1u);
  }
  add(journal, 1);
  EXPECT_TRUE(run(journal).empty());
  EXPECT_EQ(journal.counts().lost, 1u);
  EXPECT_TRUE(journal.checkpoint_due());
  journal.begin_checkpoint();
  journal.end_image();
  run(journal);
  EXPECT_EQ(journal.counts().checkpoints, 1u);
  EXPECT_EQ(journal.fill(), 0);
  add(journal, 1);
  EXPECT_EQ(run(journal).size(), 1u);
}

TEST_F(IndexJournal, ACheckpointsHeaderComesLastAndIsMadeDurable) {
  journal.begin_checkpoint();
  std::vector<index_record> image;
  for (size_t i = 0; i < records_per_block + 1; ++i)
    image.push_back(record(i));
  journal.add_image(image);
  EXPECT_FALSE(journal.next()) << "more of the image may come";
  journal.end_image();
  auto done = run(journal);
  ASSERT_EQ(done.size(), 4u);
  EXPECT_EQ(done[0].file_offset, block.layout.checkpoint_area(1) + checkpoint_header_bytes);
  EXPECT_EQ(done[0].memory->size(), 2 * record_block_bytes);
  EXPECT_EQ(done[1].wanted, action::sync);
  EXPECT_EQ(done[2].file_offset, block.layout.checkpoint_area(1));
  auto header = decode_checkpoint_header(
      block.volume, std::span<const std::byte, checkpoint_header_bytes>(done[2].memory->data(), 4096));
  ASSERT_TRUE(header);
  EXPECT_EQ(*header, (checkpoint_header{block.volume, 1, 1, 2, records_per_block + 1}));
  EXPECT_EQ(done[3].wanted, action::sync);
  EXPECT_TRUE(journal.idle());
}

TEST_F(IndexJournal, CheckpointsTakeTurnsInBothAreas) {
  std::vector<uint64_t> headers;
  for (int i = 0; i < 3; ++i) {
    journal.begin_checkpoint();
    journal.end_image();
    headers.push_back(run(journal)[1].file_offset);
  }
  EXPECT_EQ(headers[0], block.layout.checkpoint_area(1));
  EXPECT_EQ(headers[1], block.layout.checkpoint_area(0));
  EXPECT_EQ(headers[2], block.layout.checkpoint_area(1));
}

TEST_F(IndexJournal, RecordsAndImageTakeTurns) {
  journal.begin_checkpoint();
  journal.add_image(std::vector{record(1)});
  journal.end_image();
  add(journal, 1);
  auto first = journal.next();
  EXPECT_EQ(first->file_offset, block.layout.journal_begin + record_block_bytes);
  add(journal, 1);
  journal.completed(true);
  EXPECT_EQ(journal.next()->file_offset, block.layout.checkpoint_area(1) + checkpoint_header_bytes);
}

TEST_F(IndexJournal, WhatHasNoRoomInACheckpointIsCounted) {
  uint64_t room = (block.layout.checkpoint_bytes / record_block_bytes - 1) * records_per_block;
  journal.begin_checkpoint();
  std::vector<index_record> image(room + 5, record(1));
  journal.add_image(image);
  journal.end_image();
  run(journal);
  EXPECT_EQ(journal.counts().unrecorded, 5u);
  EXPECT_EQ(journal.counts().checkpoints, 1u);
}

// These changes follow the checkpoint in the journal, and it may have had no room for them.
TEST_F(IndexJournal, WhatWaitsWhenACheckpointBeginsIsAChangeAfterIt) {
  add(journal, 1);
  EXPECT_TRUE(journal.recording());
  journal.begin_checkpoint();
  EXPECT_TRUE(journal.changed());
  journal.end_image();
  run(journal);
  EXPECT_FALSE(journal.recording());
  EXPECT_TRUE(journal.changed());
  journal.begin_checkpoint();
  EXPECT_FALSE(journal.changed());
}

TEST_F(IndexJournal, AWriteThatFailsCostsItsRecordsUntilTheNextCheckpoint) {
  add(journal, 3);
  ASSERT_TRUE(journal.next());
  journal.completed(false);
  EXPECT_EQ(journal.counts().lost, 3u);
  EXPECT_EQ(journal.counts().failures, 1u);
  EXPECT_TRUE(journal.checkpoint_due());
  add(journal, 1);
  EXPECT_EQ(view_of(*journal.next()).heading.sequence, 2u) << "numbers are not used twice";
}

TEST_F(IndexJournal, ACheckpointThatFailsIsTriedAgainLaterAndLater) {
  for (uint64_t patience : {128, 256}) {
    journal.begin_checkpoint();
    journal.end_image();
    ASSERT_TRUE(journal.next());
    journal.completed(false);
    EXPECT_FALSE(journal.checkpoint_in_progress());
    EXPECT_FALSE(journal.checkpoint_due());
    add(journal, patience - 1);
    EXPECT_FALSE(journal.checkpoint_due());
    add(journal, 1);
    EXPECT_TRUE(journal.checkpoint_due());
    run(journal);
  }
}

/// Takes a checkpoint of one record, in which the operation with this number fails; returns its operations.
std::vector<journal_io> checkpoint(index_journal& journal, size_t failing = SIZE_MAX) {
  journal.begin_checkpoint();
  journal.add_image(std::vector{record(1)});
  journal.end_image();
  std::vector<journal_io> done;
  while (auto io = journal.next()) {
    done.push_back(*io);
    journal.completed(done.size() - 1 != failing);
  }
  return done;
}

TEST_F(IndexJournal, AHeaderThatFailedIsErasedBeforeItsImageIsWrittenOver) {
  for (size_t failing : {size_t{2}, size_t{3}}) { // the header, and its sync
    index_journal of(block, {});
    auto first = checkpoint(of, failing);
    ASSERT_EQ(first.size(), failing + 1);
    auto erased = checkpoint(of, 1);
    ASSERT_EQ(erased.size(), 2u) << "an erasure that is not durable is tried again";
    auto second = checkpoint(of);
    ASSERT_EQ(second.size(), 6u) << "erase, sync, image, sync, header, sync";
    EXPECT_EQ(second[0].file_offset, first[2].file_offset);
    EXPECT_FALSE(
        decode_checkpoint_header(block.volume, std::span<const std::byte, checkpoint_header_bytes>(
                                                   second[0].memory->data(), checkpoint_header_bytes)));
    EXPECT_EQ(second[1].wanted, action::sync);
    EXPECT_EQ(second[2].file_offset, first[0].file_offset);
    EXPECT_EQ(checkpoint(of).size(), 4u) << "nothing is doubtful any more";
    EXPECT_EQ(of.counts().checkpoints, 2u);
  }
}

TEST_F(IndexJournal, ADeviceThatTakesNothingDoesNotFillMemory) {
  add(journal, 1);
  ASSERT_TRUE(journal.next());
  add(journal, 2 * blocks * records_per_block);
  EXPECT_GT(journal.counts().lost, blocks * records_per_block);
}

TEST_F(IndexJournal, ForgettingIsAnsweredWhenBothSuperblocksAreDurable) {
  std::optional<bool> answered;
  journal.forget(std::nullopt, 0, [&](bool durable) { answered = durable; });
  EXPECT_EQ(journal.block().epoch, 4u);
  std::vector<action> done;
  std::vector<uint64_t> places;
  while (auto io = journal.next()) {
    EXPECT_FALSE(answered);
    done.push_back(io->wanted);
    places.push_back(io->file_offset);
    journal.completed(true);
  }
  EXPECT_EQ(done, (std::vector{action::write, action::sync, action::write, action::sync}));
  EXPECT_NE(places[0], places[2]);
  EXPECT_EQ(answered, true);
}

TEST_F(IndexJournal, ForgettingThatFailsSaysSo) {
  std::optional<bool> answered;
  journal.forget(space_fingerprint{1}, 0, [&](bool durable) { answered = durable; });
  ASSERT_TRUE(journal.next());
  journal.completed(false);
  EXPECT_EQ(answered, false);
  EXPECT_TRUE(journal.idle());
}

TEST_F(IndexJournal, FloorsBelowEveryObjectMakeRoomForNewOnes) {
  auto forget = [&](uint8_t space) { journal.forget(space_fingerprint{space}, 0, [](bool) {}); };
  for (uint8_t space = 0; space < superblock::floors_max; ++space)
    forget(space);
  journal.begin_checkpoint(); // an empty index: no object is older than now
  journal.end_image();
  run(journal);
  forget(100);
  EXPECT_EQ(journal.block().floors.size(), 1u);
  EXPECT_EQ(journal.block().forgotten_below, block.epoch + superblock::floors_max);
}

TEST_F(IndexJournal, OnOnePathOfSeveralFloorsStayAsLongAsThereIsRoom) {
  superblock one = small_store();
  one.path_count = 2;
  index_journal path(one, {});
  auto forget = [&](uint8_t space) { path.forget(space_fingerprint{space}, 0, [](bool) {}); };
  auto checkpoint = [&] {
    path.begin_checkpoint(); // an empty index: no object here is older than now
    path.end_image();
    run(path);
  };
  forget(1);
  checkpoint();
  forget(2);
  EXPECT_EQ(path.block().floors.size(), 2u) << "another path may have been away";
  EXPECT_EQ(path.block().forgotten_below, 0u) << "another path may have older objects";
  for (uint8_t space = 3; space <= superblock::floors_max; ++space)
    forget(space);
  checkpoint();
  forget(100);
  EXPECT_EQ(path.block().floors.size(), 1u);
  EXPECT_EQ(path.block().forgotten_below, 0u);
}

TEST_F(IndexJournal, WhileAPathIsMissingAllIsForgottenWhereAFloorHasNoRoom) {
  superblock one = small_store();
  one.path_count = 2;
  one.missing = path_bit(1);
  index_journal path(one, {});
  auto forget = [&](uint8_t space) { path.forget(space_fingerprint{space}, 0, [](bool) {}); };
  for (uint8_t space = 1; space <= superblock::floors_max; ++space)
    forget(space);
  path.begin_checkpoint(); // an empty index: no object here is older than now
  path.end_image();
  run(path);
  forget(100);
  EXPECT_TRUE(path.block().floors.empty());
  EXPECT_EQ(path.block().forgotten_below, path.block().epoch) << "the missing path has not heard of any";
}

TEST_F(IndexJournal, ForgettingReachesTheEpochOfTheOtherPaths) {
  journal.forget(std::nullopt, 9, [](bool) {});
  EXPECT_EQ(journal.block().epoch, 10u);
  EXPECT_EQ(journal.block().forgotten_below, 10u);
  journal.forget(space_fingerprint{1}, 2, [](bool) {});
  EXPECT_EQ(journal.block().epoch, 11u);
}

TEST_F(IndexJournal, ForgettingThatIsGivenUpIsMadeDurableAllTheSame) {
  std::vector<bool> answers;
  journal.forget(std::nullopt, 0, [&](bool durable) { answers.push_back(durable); });
  ASSERT_TRUE(journal.next()); // the device does not answer
  journal.forget(space_fingerprint{1}, 0, [&](bool durable) { answers.push_back(durable); });
  journal.give_up_forgets();
  EXPECT_EQ(answers, (std::vector<bool>{false, false}));
  journal.give_up_forgets();
  journal.completed(true);
  EXPECT_EQ(run(journal).size(), 7u) << "three steps of the first, four of the second";
  EXPECT_EQ(answers.size(), 2u);
  EXPECT_TRUE(journal.idle());
}

} // namespace
} // namespace terrace
