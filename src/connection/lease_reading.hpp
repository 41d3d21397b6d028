// A client is told where objects of a lease are, step by step.
#pragma once

#include "group/group_messages.hpp"
#include "connection/told_places.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/objects/object_place.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

/// Advanced by `client_holdings::read_some`. Used by one thread at a time.
struct lease_reading {
  static constexpr size_t step_objects = 4'096; ///< well below a millisecond

  lease_ptr from;
  std::span<const object_place> places; ///< in host memory; outlive the reading
  std::vector<hold_ptr> holds;          ///< keep them there
  std::function<size_t(size_t)> number; ///< in the lease, of the n-th place

  // For `read_some`:
  enum class stage : uint8_t { begins, counting, telling, told };
  stage now = stage::begins;
  size_t done = 0;                   ///< places that this stage is done with
  uint64_t fresh = 0;                ///< of the places, those that were not told before
  uint64_t added = 0;                ///< of these, those that are told by now
  uint64_t bytes = 0;                ///< of all places, physical
  std::shared_ptr<told_places> told; ///< of the lease
};

} // namespace terrace
