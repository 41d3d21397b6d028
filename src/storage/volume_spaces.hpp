// The numbers that a volume assigns to spaces, so that index records need not repeat fingerprints.
#pragma once

#include "base/ids.hpp"
#include "index/index_record.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace terrace {

/// The spaces of one open volume: their ids in this run of the daemon and their persistent numbers in the
/// volume, which are never reused. Owned by one actor.
class volume_spaces {
 public:
  explicit volume_spaces(uint32_t next_number = 1) : next_number_(next_number) {}

  /// Adds a space found by recovery.
  void add(space_id space, uint32_t number, const space_fingerprint& fingerprint) {
    known_[space] = {number, fingerprint};
    if (number >= next_number_)
      next_number_ = number + 1;
  }

  /// Notes a space found by recovery for which the daemon has no room: its objects are not restored, but
  /// until a checkpoint without it is written, a restart may find them.
  void leave_out(uint32_t number, const space_fingerprint& fingerprint) {
    left_out_.push_back({number, fingerprint, next_checkpoint_});
    next_number_ = std::max(next_number_, number + 1);
  }

  /// Returns 0 if the space has no number yet.
  uint32_t number_of(space_id space) const {
    auto found = known_.find(space);
    return found == known_.end() ? 0 : found->second.number;
  }
  /// Gives the space the next number.
  uint32_t define(space_id space, const space_fingerprint& fingerprint) {
    add(space, next_number_, fingerprint);
    return number_of(space);
  }
  std::optional<space_fingerprint> fingerprint_of(space_id space) const {
    auto found = known_.find(space);
    return found == known_.end() ? std::nullopt : std::optional(found->second.fingerprint);
  }
  /// True if a restart could find objects of it.
  bool knows(const space_fingerprint& fingerprint) const {
    return std::any_of(known_.begin(), known_.end(),
                       [&](const auto& each) { return each.second.fingerprint == fingerprint; }) ||
           std::any_of(left_out_.begin(), left_out_.end(),
                       [&](const numbered& each) { return each.fingerprint == fingerprint; });
  }

  /// Forgets a space without objects, whose id is not used again. Until a checkpoint without it is written, a
  /// restart may find objects that were removed since the last one, so it stays known until then.
  void forget(space_id gone) {
    if (auto found = known_.find(gone); found != known_.end() && !found->second.gone)
      found->second.gone = next_checkpoint_;
  }
  /// `completed`: checkpoints before the one that begins.
  void checkpoint_begun(uint64_t completed) {
    begun_after_ = completed;
    ++next_checkpoint_;
  }
  /// `completed`: checkpoints until now.
  void checkpoints_done(uint64_t completed) {
    if (!begun_after_ || completed <= *begun_after_)
      return;
    begun_after_.reset();
    auto ended = [&](const numbered& each) { return each.gone && *each.gone < next_checkpoint_; };
    std::erase_if(known_, [&](const auto& each) { return ended(each.second); });
    std::erase_if(left_out_, ended);
  }

  /// Returns the first records of every checkpoint.
  std::vector<index_record> records() const {
    std::vector<index_record> all;
    for (const auto& [in, space] : known_)
      if (!space.gone)
        all.push_back(space_record(space.number, space.fingerprint));
    return all;
  }

  size_t size() const { return known_.size(); }

 private:
  struct numbered {
    uint32_t number = 0;
    space_fingerprint fingerprint{};
    /// Set when forgotten: a checkpoint begun after this number of others leaves it out.
    std::optional<uint64_t> gone{};
  };
  std::map<space_id, numbered> known_;
  std::vector<numbered> left_out_;
  uint32_t next_number_;
  uint64_t next_checkpoint_ = 0;
  std::optional<uint64_t> begun_after_; ///< while a checkpoint is written: how many were complete before it
};

} // namespace terrace
