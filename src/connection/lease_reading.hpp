// Tells a client the locations of a lease's objects, step by step.
#pragma once

#include "connection/told_places.hpp"
#include "group/group_messages.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/objects/object_place.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

/// `client_holdings::read_some` advances it. Used by one thread at a time.
struct lease_reading {
  static constexpr size_t step_objects = 4'096; ///< one step takes well below a millisecond

  lease_ptr from;
  std::span<const object_place> places; ///< places in host memory; they outlive the reading
  std::vector<hold_ptr> holds;          ///< holds that keep the objects in place
  std::function<size_t(size_t)> number; ///< number in the lease of the n-th place

  // Stage of `read_some`.
  enum class stage : uint8_t { begins, counting, telling, told };
  stage now = stage::begins;
  size_t done = 0;                   ///< places that this stage has processed
  uint64_t fresh = 0;                ///< places that had not been told before
  uint64_t added = 0;                ///< the part of `fresh` that has been told
  uint64_t bytes = 0;                ///< physical bytes of all places
  std::shared_ptr<told_places> told; ///< places of the lease that the client was told
};

} // namespace terrace
