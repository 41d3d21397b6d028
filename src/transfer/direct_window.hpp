// A window of a load, chunk by chunk, into memory of a device, of chunks that only the disk has: the device reads them itself, and they do
// not pass host memory.
//
// Pure: a load asks the tier and the device. In order: the `before_...` and `readable`, `cut`, `take_held`, `request`, `take_read`,
// `take_confirmed`, `announcement`, `deliver`. Used by one thread at a time.
#pragma once

#include "tier/confirm.hpp"
#include "tier/tier_index.hpp"
#include "transfer/copy_messages.hpp"
#include "transfer/direct_messages.hpp"
#include "transfer/load_course.hpp"
#include "transfer/recent_keys.hpp"

#include <optional>

namespace terrace {

class direct_window {
 public:
  /// The next objects of the course, which outlives it, up to `bytes_max`.
  direct_window(load_course& course, uint64_t bytes_max)
      : course_(course), part_{course.begin, course.end_of_window(course.begin, bytes_max), nullptr} {}

  // How many of the first `most` objects... None looks further than it has to.
  /// ... are before the first chunk of those that were read in this way lately: the second time it passes host memory, and stays
  /// there.
  size_t before_known(size_t most, const recent_keys& read) const;
  /// ... are before the first that a tier has, or that is being written there.
  size_t before_present(size_t most, const tier_index& tier) const;
  /// ... a device can read and verify, if an extent has `bytes_max` at most.
  size_t readable(size_t most, uint64_t bytes_max) const;

  size_t size() const { return part_.size(); }
  /// To the whole chunks among these first objects. False: there are none.
  bool cut(size_t objects);
  /// From `cut` on.
  const batch_ptr& objects() const { return part_.objects; }

  /// What the lease of the load holds of them on the disk; null: nothing.
  hold_ptr leased() const;
  /// Parallel to the objects. False: the first chunk is not there as a whole.
  bool take_held(hold_ptr held);

  direct_load request(const space_ptr& in) const;

  /// So many of the first objects are in the region. False: not all that was asked for.
  bool take_read(size_t objects);
  /// Are those still published? What was cleared meanwhile is not delivered.
  confirm_request confirmation() const;
  /// False: not all of them.
  bool take_confirmed(const std::vector<bool>& present);
  /// To whoever waits for what has arrived, without objects. Nothing: nobody does.
  std::optional<copy_request> announcement() const;
  /// Accounts the chunks as delivered, and notes them. Returns their bytes.
  uint64_t deliver(recent_keys& read);

 private:
  load_course& course_;
  transfer_window part_;
  hold_ptr held_;
  size_t usable_ = 0; ///< objects of whole chunks from the beginning on
};

} // namespace terrace
