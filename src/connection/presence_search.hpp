// Finds out which objects of a reservation host memory has, some at a time.
//
// Pure: a connection asks the tier, and passes its answers to this class. Used by one thread at a time.
#pragma once

#include "index/prefix_plan.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_batch.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace terrace {

class presence_search {
 public:
  static constexpr size_t probed_objects = 1'024; ///< objects per question
  static_assert(probed_objects % 64 == 0);

  explicit presence_search(batch_ptr objects) : objects_(std::move(objects)), present_(objects_->size()) {}

  /// The next question; nullopt if everything is known. Questions are asked one after the other.
  std::optional<probe_request> next() const {
    if (next_ >= objects_->size())
      return std::nullopt;
    return probe_request{objects_, false, false, {next_, probed_objects}};
  }
  void take(const probe_answer& found) {
    present_.merge(next_, found.present);
    next_ += probed_objects;
  }

  const batch_ptr& objects() const { return objects_; }
  const object_bitmap& present() const { return present_; }

 private:
  batch_ptr objects_;
  object_bitmap present_;
  size_t next_ = 0;
};

} // namespace terrace
