// The persistent index of one path of a disk tier: it decides what the journal records and when a checkpoint
// begins, and knows what the last checkpoint contains.
//
//   journal.add(changes);
//   journal.advance();                                   // after every event
//   if (auto part = journal.image_wanted()) ...          // ask the tier, then `take` its answer
//   if (auto io = journal.next()) ...                    // write it, then `completed`
//
// Pure: the journal actor has the device and the tier. Used by one thread at a time.
#pragma once

#include "storage/index_journal.hpp"
#include "storage/volume_spaces.hpp"
#include "tier/objects/index_keeping.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

// Messages to the journal of a path, beside those of its tier (tier/objects/index_keeping.hpp).

/// The disk set sends it when the tier no longer changes. (delayed: until a checkpoint contains everything,
/// or could not be written)
struct close_journal_request {};
struct close_journal_answer {
  error failure;
};

class path_journal {
 public:
  /// The number of slots that the tier is asked for at a time, so that others have their turn.
  static constexpr uint32_t image_slots = 1024;

  struct options {
    std::string file; ///< the path's name in texts
    extent in_arena;  ///< the path's part of the tier's arena
    journal_position position;
    volume_spaces spaces;
  };
  path_journal(const superblock& block, options with);
  path_journal(const path_journal&) = delete;
  path_journal& operator=(const path_journal&) = delete;

  /// Omits objects of a space without a number in the volume, unless the space is named in `changes`: none of
  /// them was ever published.
  void add(const index_changes& changes);

  /// Begins a checkpoint if one is due.
  void advance();

  /// Returns the part of the index to ask the tier for; nullopt: none is needed now, or an answer is awaited.
  std::optional<image_request> image_wanted();
  void add(const image_answer& part);

  /// The next operation; nullopt while one is in progress or nothing is to be done.
  std::optional<journal_io> next();
  /// `result`: bytes written (0 for a sync), or -errno. Returns the report that writing begins to fail, or
  /// works again; empty if nothing has changed.
  std::string completed(int32_t result);

  /// Objects written until now must not come back. `done` is called at once if there is nothing to do,
  /// otherwise when that is durable or cannot become durable.
  void forget(const forget_request& request, std::function<void(forget_answer)> done);
  /// The device does not respond: the pending `forget` calls fail. They still become durable once it responds.
  void give_up_forgets() { journal_.give_up_forgets(); }

  struct room_report {
    std::string notice; ///< the objects that a restart will miss for lack of room in the index; empty if none
    bool news = false;  ///< the checkpoint before had room, or there is no later one
  };
  /// Call after `next` and `completed`. Nullopt: no checkpoint was completed since the last call, and none
  /// was the last.
  std::optional<room_report> room();

  /// There are no more changes: the next checkpoint is the last.
  void close() { closing_ = true; }
  /// True after `close`, once nothing is left to do.
  bool closed() const { return closing_ && !asking_ && journal_.idle(); }
  /// Call once closed. Returns the error if the last checkpoint does not contain everything.
  error missing() const;

  // ---- checks ----

  /// The records that exist before the first change.
  void has_recorded(const journal_sums& recorded) { told_ = recorded; }
  /// Compares the index of the path with what this journal was told; returns a sentence for each difference.
  std::vector<std::string> check(const journal_sums& index) const;

  const journal_counts& counts() const { return journal_.counts(); }
  double fill() const { return journal_.fill(); }

 private:
  void tell(const std::vector<index_change>& changes);
  std::vector<index_record> numbered(const std::vector<index_change>& changes) const;

  options with_;
  std::optional<journal_sums> told_; ///< objects that are or will be recorded; none: they are not known
  index_journal journal_;
  uint64_t expected_bytes_ = 0; ///< bytes that the operation in progress should write
  bool failing_ = false;
  uint64_t lost_at_begin_ = 0; ///< records lost before the last checkpoint began
  uint64_t lost_recorded_ = 0; ///< lost records whose spaces were recorded again
  uint32_t next_slot_ = 0;
  bool asking_ = false; ///< a part of the image was requested
  bool closing_ = false;
  bool last_begun_ = false; ///< the last checkpoint has begun
  uint64_t checkpoints_told_ = 0;
  std::string room_notice_; ///< what the last completed checkpoint left out
  std::string room_news_;   ///< as much of it as was news
};

} // namespace terrace
