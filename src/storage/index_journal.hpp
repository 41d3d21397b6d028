// Persists a volume's index: changes are written to a journal, and at intervals the whole index to a
// checkpoint.
//
// A plain state machine. The owner adds records and performs the I/O requested by `next`, one operation at a
// time:
//
//   journal.add(record);
//   if (journal.checkpoint_due()) journal.begin_checkpoint();
//   while (journal.wants_image()) journal.add_image(...);           // or end_image()
//   if (auto io = journal.next()) ... write or sync, then journal.completed(good) ...
//
// Records added while an operation is in progress are written together by the next one: a group commit.
//
// After a crash anything may be missing but nothing may be wrong, so stores do not wait for the journal: a
// lost record costs an object, and a stale record costs a miss, because every object is verified against its
// own header when it is read. Only forgetting is made durable before it is answered.
//
// The index may change while a checkpoint is taken. The checkpoint starts with a journal sequence number;
// every later change is also in the journal, and reading a change twice is harmless (recovery.hpp). Its
// header is written, once all of the image is durable, into the area that does not contain the previous
// checkpoint; journal blocks are reused once the header is durable.
#pragma once

#include "index/index_record.hpp"
#include "storage/aligned_buffer.hpp"
#include "storage/record_block.hpp"
#include "storage/superblock.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace terrace {

// The latest journal event of each extent.

/// Records may be added in any order. `settle` then determines the last event at each offset: the one with
/// the highest generation, where a removal is later than the publication with the same generation.
class journal_events {
 public:
  /// `arena_bytes` sizes a table with one bit per block, so that most queries take one memory access.
  explicit journal_events(uint64_t arena_bytes) : known_blocks_(arena_bytes / disk_alignment_bytes) {}

  /// Adds a `publish` or `remove` record.
  void add(const index_record& record) {
    uint64_t block = record.offset / disk_alignment_bytes;
    if (block < known_blocks_.size())
      known_blocks_[block] = true;
    last_.push_back({record.offset, record.generation, record.kind == record_kind::remove, records_.size()});
    records_.push_back(record);
  }

  /// Call after the last `add`.
  void settle();

  /// True if an event at the record's offset is at least as new as the record, which is therefore void.
  bool supersedes(const index_record& record) const {
    uint64_t block = record.offset / disk_alignment_bytes;
    if (block < known_blocks_.size() && !known_blocks_[block])
      return false;
    return has_later(record);
  }

  size_t size() const { return last_.size(); }

  /// The objects present now, by offset.
  template <class Use>
  void for_each_published(Use&& use) const {
    for (const event& one : last_)
      if (!one.removes)
        use(records_[one.record]);
  }

 private:
  struct event {
    uint64_t offset;
    uint64_t generation;
    bool removes;
    size_t record;
  };

  bool has_later(const index_record& record) const;

  std::vector<bool> known_blocks_;
  std::vector<index_record> records_;
  std::vector<event> last_; ///< by offset, once settled
};

/// Where a journal continues: the result of recovery, or the default for a new volume.
struct journal_position {
  uint64_t next_sequence = 1;     ///< number of the next journal block
  uint64_t live_from = 1;         ///< the oldest journal block that a recovery would read
  uint64_t checkpoint_number = 0; ///< number of the last checkpoint; 0: none yet
  /// Higher than all generations found, and at least the first of the present epoch.
  uint64_t next_generation = 0;
};

struct journal_io {
  enum class action : uint8_t { write, sync };
  action wanted = action::write;
  uint64_t file_offset = 0;
  std::shared_ptr<const aligned_buffer> memory;
};

/// Counts for metrics, since the journal was opened.
struct journal_counts {
  uint64_t records = 0;
  uint64_t blocks = 0; ///< journal blocks written
  uint64_t writes = 0; ///< write operations for them
  /// Records without room in the journal or with a failed write; the next checkpoint contains them.
  uint64_t lost = 0;
  uint64_t checkpoints = 0;
  uint64_t failures = 0;   ///< failed operations
  uint64_t unrecorded = 0; ///< objects that did not fit into the last checkpoint
};

class index_journal {
 public:
  static constexpr uint64_t write_bytes_max = 1ULL << 20;

  /// `block` is the superblock as on disk.
  index_journal(const superblock& block, const journal_position& from);

  /// Records must be added in the order of the events.
  void add(const index_record& record);

  /// True if no checkpoint is in progress and one is needed: the journal is three quarters full, or records
  /// were lost.
  bool checkpoint_due() const;
  /// True if the index has changed since the last checkpoint began, or changes waited then: the journal has
  /// them after it.
  bool changed() const { return changed_ || lossy_; }
  /// True if records are to be written and the journal has room. Without room they are lost, and a checkpoint is due.
  bool recording() const { return !pending_.empty() && live_blocks() < journal_blocks(); }
  bool checkpoint_in_progress() const { return phase_ != phase::none; }

  /// From now on the owner passes the whole present index, in parts of any size, spaces first.
  void begin_checkpoint();
  bool wants_image() const { return takes_image() && !image_ended_ && image_.size() < image_records_max; }
  void add_image(std::span<const index_record> records);
  void end_image();

  /// Forgets the objects of one space, or all objects, written in the present epoch or earlier. The epoch is
  /// raised immediately; `done` is called when that is durable or has failed. `epoch`: the present epoch of a
  /// volume on several paths, which this path may not have reached.
  void forget(const std::optional<space_fingerprint>& space, uint64_t epoch,
              std::function<void(bool durable)> done);

  /// Call if the device does not respond: fails all pending `forget` calls. They still become durable once it
  /// responds.
  void give_up_forgets();

  /// The next operation; nullopt while one is in progress or nothing is to be done.
  std::optional<journal_io> next();
  void completed(bool good);

  /// True if nothing is in progress and nothing is left to do.
  bool idle() const;

  const superblock& block() const { return block_; }
  const journal_counts& counts() const { return counts_; }
  /// The fraction of the journal blocks that a recovery would read.
  double fill() const;

  /// Records for which a checkpoint has room: one per object, and one per space.
  uint64_t records_max() const { return image_blocks_max() * records_per_block; }

 private:
  static constexpr size_t image_records_max = 4 * write_bytes_max / record_block_bytes * records_per_block;

  enum class phase : uint8_t { none, erase, erase_sync, image, image_sync, header, header_sync };
  enum class doing : uint8_t {
    nothing,
    journal,
    erase,
    erase_sync,
    image,
    image_sync,
    header,
    header_sync,
    superblock
  };
  struct forgetting {
    std::function<void(bool)> done;
    int steps_left = 4; ///< write, sync, write the other copy, sync
  };

  uint64_t live_blocks() const { return position_.next_sequence - position_.live_from; }
  uint64_t journal_blocks() const { return block_.layout.journal_bytes / record_block_bytes; }
  uint64_t image_blocks_max() const { return block_.layout.checkpoint_bytes / record_block_bytes - 1; }
  uint64_t checkpoint_area() const {
    return block_.layout.checkpoint_area((position_.checkpoint_number + 1) % 2);
  }

  std::optional<journal_io> forget_step();
  std::optional<journal_io> write_journal();
  std::optional<journal_io> write_image();
  std::optional<journal_io> checkpoint_step();
  journal_io write_header(const std::shared_ptr<aligned_buffer>& header);
  bool takes_image() const { return phase_ != phase::none && phase_ <= phase::image; }
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
  bool header_doubtful_ = false; ///< one that failed may be there: its image must stay until it is erased
  uint64_t image_blocks_ = 0;
  uint64_t image_records_ = 0;
  uint64_t image_left_out_ = 0;
  uint64_t image_epoch_ = 0;    ///< the oldest epoch in the image so far
  uint64_t oldest_epoch_ = 0;   ///< no object of the last checkpoint, and none since, is older
  uint64_t image_sequence_ = 0; ///< the journal's sequence number when the image began
  bool lossy_ = false;          ///< records were lost since the last checkpoint began
  bool changed_ = false;
  bool image_turn_ = false;
  uint64_t checkpoint_not_before_ = 0; ///< after a failure: the number of records before the next attempt
  unsigned failures_in_row_ = 0;

  std::deque<forgetting> forgetting_;
  doing doing_ = doing::nothing;
  journal_counts counts_;
};

} // namespace terrace
