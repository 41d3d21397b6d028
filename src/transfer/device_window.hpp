// A window of a load into memory of a device whose own tier has the objects: they are copied on the device, and do not
// pass host memory.
//
// Pure: a load asks the tier and its mover. In order: `take_held`, `take_confirmed` of what a lease holds, `request`, `deliver`. Used by
// one thread at a time.
#pragma once

#include "tier/messages.hpp"
#include "transfer/copy_messages.hpp"
#include "transfer/load_course.hpp"

namespace terrace {

class device_window {
 public:
  /// The next objects of the course, which outlives it, up to `bytes_max`.
  device_window(load_course& course, uint64_t bytes_max)
      : course_(course), part_(course.next_window(bytes_max)) {}

  const batch_ptr& objects() const { return part_.objects; }

  /// What the lease of the load holds of them in the device's tier; null: nothing.
  hold_ptr leased() const;
  /// Parallel to the objects. False: the first chunk is not there as a whole.
  bool take_held(hold_ptr held);

  /// Are they still published? A lease may hold what was cleared.
  confirm_request confirmation() const;
  /// False: not all of them.
  bool take_confirmed(const std::vector<bool>& present);

  device_load_request request() const;

  /// Accounts the chunks as delivered. Returns their bytes.
  uint64_t deliver();

 private:
  load_course& course_;
  transfer_window part_;
  hold_ptr held_;
  size_t usable_ = 0; ///< objects of whole chunks from the beginning on
};

} // namespace terrace
