// A window of a load, chunk by chunk, into memory of a device, of chunks that only the disk has: the device reads them itself, and they do
// not pass host memory.
//
// Pure: a load asks the tier and the device. In order: the `before_...` and `readable`, `cut`, `add_held`, `request`, `add_read`,
// `add_confirmed`, `announcement`, `deliver`. Used by one thread at a time.
#pragma once

#include "tier/messages.hpp"
#include "tier/objects/tier_index.hpp"
#include "transfer/copy_messages.hpp"
#include "transfer/load_plan.hpp"
#include "transfer/mover_messages.hpp"
#include "transfer/unread_files.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace terrace {

// A window of a load into memory of a device whose own tier has the objects: they are copied on the device, and do not
// pass host memory.
//
// Pure: a load asks the tier and its mover. In order: `add_held`, `add_confirmed` of what a lease holds, `request`, `deliver`. Used by
// one thread at a time.

class device_window {
 public:
  /// The next objects of the load, which outlives it, up to `bytes_max`.
  device_window(load_plan& load, uint64_t bytes_max) : load_(load), part_(load.next_window(bytes_max)) {}

  const batch_ptr& objects() const { return part_.objects; }

  /// What the lease of the load holds of them in the device's tier; null: nothing.
  hold_ptr leased() const;
  /// Parallel to the objects. False: the first chunk is not there as a whole.
  bool add_held(hold_ptr held);

  /// Are they still published? A lease may hold what was cleared.
  confirm_request confirmation() const;
  /// False: not all of them.
  bool add_confirmed(const std::vector<bool>& present);

  device_load_request request() const;

  /// Accounts the chunks as delivered. Returns their bytes.
  uint64_t deliver();

 private:
  load_plan& load_;
  transfer_window part_;
  hold_ptr held_;
  size_t usable_ = 0; ///< objects of whole chunks from the beginning on
};

/// How many of the first `size` objects are allowed by `allows(most)`, which may look at all of the first `most` and returns how many of
/// these: asked for `first` of them, and then for more and more, so that little beyond the answer is looked at.
template <class Allows>
size_t first_allowed(size_t size, size_t first, Allows&& allows) {
  for (size_t most = std::min(first, size);; most = most <= size / 4 ? most * 4 : size) {
    const size_t found = allows(most);
    if (found < most || most == size)
      return found;
  }
}

class direct_window {
 public:
  /// The next objects of the load, which outlives it, up to `bytes_max`.
  direct_window(load_plan& load, uint64_t bytes_max)
      : load_(load), part_{load.begin, load.end_of_window(load.begin, bytes_max), nullptr} {}

  // How many of the first `most` objects... None looks further than it has to.
  /// ... are before the first chunk of those that were read in this way lately: the second time it passes host memory, and stays
  /// there.
  size_t before_known(size_t most, const recent_keys& read) const;
  /// ... are before the first that a tier has, or that is being written there.
  size_t before_present(size_t most, const tier_index& tier) const;
  /// ... a device can read and verify, if an extent has `bytes_max` at most.
  size_t readable(size_t most, uint64_t bytes_max) const;

  size_t size() const { return part_.size(); }
  size_t chunk() const { return load_.subject.objects_per_chunk; } ///< objects of one
  /// To the whole chunks among these first objects. False: there are none.
  bool cut(size_t objects);
  /// From `cut` on.
  const batch_ptr& objects() const { return part_.objects; }

  /// What the lease of the load holds of them on the disk; null: nothing.
  hold_ptr leased() const;
  /// Parallel to the objects. False: the first chunk is not there as a whole.
  bool add_held(hold_ptr held);

  direct_load request(const space_ptr& space) const;

  /// So many of the first objects are in the region. False: not all that was asked for.
  bool add_read(size_t objects);
  /// Are those still published? What was cleared meanwhile is not delivered.
  confirm_request confirmation() const;
  /// False: not all of them.
  bool add_confirmed(const std::vector<bool>& present);
  /// To whoever waits for what has arrived, without objects. Nothing: nobody does.
  std::optional<copy_request> announcement() const;
  /// Accounts the chunks as delivered, and notes them. Returns their bytes.
  uint64_t deliver(recent_keys& read);

 private:
  load_plan& load_;
  transfer_window part_;
  hold_ptr held_;
  size_t usable_ = 0; ///< objects of whole chunks from the beginning on
};

} // namespace terrace
