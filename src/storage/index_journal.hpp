// Keeps a volume's index on its disk: what happens goes into a journal, and now and then all of it into a checkpoint.
//
// A plain state machine. Whoever owns it adds records, and does the I/O that `next` asks for, one operation at a time:
//
//   journal.add(record);
//   if (journal.checkpoint_due()) journal.begin_checkpoint();
//   while (journal.wants_image()) journal.add_image(...);           // or end_image()
//   if (auto io = journal.next()) ... write or sync, then journal.completed(good) ...
//
// What was added while an operation was under way goes out together with the next one: a group commit.
//
// After a crash anything may be missing and nothing may be wrong, so nothing here is awaited by those who store: a
// record that is lost costs an object, and a record that is stale costs a miss, for every object is verified by its own
// header when it is read. Only forgetting is made durable before it is answered.
//
// A checkpoint is taken while the index goes on changing. It begins with a number of the journal; every change after
// that is in the journal, too, and reading a change twice does no harm (recovery.hpp). Its header is written when all of
// it is durable, into the area that does not hold the last one; journal blocks are used again once the header is
// durable.
#pragma once

#include "storage/aligned_buffer.hpp"
#include "storage/record_block.hpp"
#include "storage/superblock.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace terrace {

/// Where a journal goes on: recovery's answer, or the default for a volume that was just made.
struct journal_position {
  uint64_t next_sequence = 1;     ///< of the next journal block
  uint64_t live_from = 1;         ///< the oldest journal block that a recovery would need
  uint64_t checkpoint_number = 0; ///< of the last checkpoint; 0: none yet
  uint64_t next_generation = 0;   ///< higher than all that were found, and of the present epoch at least
};

struct journal_io {
  enum class action : uint8_t { write, sync };
  action what = action::write;
  uint64_t file_offset = 0;
  std::shared_ptr<const aligned_buffer> memory;
};

/// For metrics; all since the journal was opened.
struct journal_counts {
  uint64_t records = 0;
  uint64_t blocks = 0; ///< journal blocks written
  uint64_t writes = 0; ///< of them: operations
  uint64_t lost =
      0; ///< records that found no room in the journal or whose write failed; the next checkpoint has them
  uint64_t checkpoints = 0;
  uint64_t failures = 0;   ///< operations
  uint64_t unrecorded = 0; ///< objects that the last checkpoint had no room for
};

class index_journal {
 public:
  static constexpr uint64_t write_bytes_max = 1ULL << 20;

  /// `block` as it stands on disk.
  index_journal(const superblock& block, const journal_position& from);

  /// In the order in which things happened.
  void add(const index_record& record);

  /// No checkpoint is under way, and one should be: the journal is three quarters full, or records were lost.
  bool checkpoint_due() const;
  /// Something has changed since the last checkpoint began.
  bool changed() const { return changed_ || lossy_; }
  bool checkpoint_in_progress() const { return phase_ != phase::none; }

  /// The owner passes the whole index as it is from now on, in parts of any size, the spaces first.
  void begin_checkpoint();
  bool wants_image() const {
    return phase_ == phase::image && !image_ended_ && image_.size() < image_records_max;
  }
  void add_image(std::span<const index_record> records);
  void end_image();

  /// Forgets the objects of one space, or all, that were written under the present epoch or an earlier one. The epoch is
  /// raised at once; `done` says when that is durable, or that it could not be made so. `epoch`: the present one of a
  /// volume on several paths, which this one may not have reached.
  void forget(const std::optional<space_fingerprint>& space, uint64_t epoch,
              std::function<void(bool durable)> done);

  /// The device does not answer: says so to all who wait for `forget`. It is made durable all the same when it does.
  void give_up_forgets();

  /// The next operation; nothing while one is under way, or nothing is to do.
  std::optional<journal_io> next();
  void completed(bool good);

  /// Nothing is under way and nothing is left to do.
  bool idle() const;

  const superblock& block() const { return block_; }
  const journal_counts& counts() const { return counts_; }
  /// Of journal blocks, those that a recovery would need.
  double fill() const;

 private:
  static constexpr size_t image_records_max = 4 * write_bytes_max / record_block_bytes * records_per_block;

  enum class phase : uint8_t { none, image, image_sync, header, header_sync };
  enum class doing : uint8_t { nothing, journal, image, image_sync, header, header_sync, superblock };
  struct forgetting {
    std::function<void(bool)> done;
    int steps_left = 4; ///< write, sync, write the other copy, sync
  };

  uint64_t journal_blocks() const { return block_.layout.journal_bytes / record_block_bytes; }
  uint64_t image_blocks_max() const { return block_.layout.checkpoint_bytes / record_block_bytes - 1; }
  uint64_t checkpoint_area() const {
    return block_.layout.checkpoint_area((position_.checkpoint_number + 1) % 2);
  }

  std::optional<journal_io> forget_step();
  std::optional<journal_io> write_journal();
  std::optional<journal_io> write_image();
  std::optional<journal_io> checkpoint_step();
  bool image_is_ready() const;
  void lose(size_t records);
  void checkpoint_failed();
  void checkpoint_is_durable();

  superblock block_;
  journal_position position_;
  std::deque<index_record> pending_;
  size_t writing_records_ = 0;

  phase phase_ = phase::none;
  std::deque<index_record> image_;
  bool image_ended_ = false;
  uint64_t image_blocks_ = 0;
  uint64_t image_records_ = 0;
  uint64_t image_left_out_ = 0;
  uint64_t image_epoch_ = 0;    ///< the oldest epoch in the image so far
  uint64_t oldest_epoch_ = 0;   ///< no object of the last checkpoint, and none since, is older
  uint64_t image_sequence_ = 0; ///< where the journal stood when it began
  bool lossy_ = false;          ///< records were lost since the last checkpoint began
  bool changed_ = false;
  bool image_turn_ = false;
  uint64_t checkpoint_not_before_ = 0; ///< after a failure: so many records first
  unsigned failures_in_row_ = 0;

  std::deque<forgetting> forgetting_;
  doing doing_ = doing::nothing;
  journal_counts counts_;
};

} // namespace terrace
