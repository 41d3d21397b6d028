// Checks of a tier. The tier sends its objects as they are to actors that know of the same objects. This
// message follows all messages that the tier sent before, so its receiver must know exactly these objects;
// meanwhile nothing waits.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/object_key.hpp"
#include "base/tier_properties.hpp"
#include "index/resident.hpp"
#include "memory/allocator.hpp"
#include "tier/space/write_credit.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace terrace {

/// An object of a tier.
struct checked_object {
  object_id id{};
  object_key key;
  extent place;           ///< in the tier's arena
  bool published = false; ///< lookups find it
  bool pinned = false;    ///< the policy knows it as pinned
  uint32_t holds = 0;
  bool touched = false; ///< it changed since the walk began
};

/// Some objects of a tier, and how many there are in all.
struct checked_slice {
  tier_kind tier = nowhere;
  std::vector<checked_object> objects;
  uint64_t published_in_all = 0;
  uint64_t extents_in_all = 0; ///< extents of objects, and of those that left in a round that has not ended
  uint64_t bytes_in_all = 0;   ///< their sum, physical
};
using slice_ptr = std::shared_ptr<const checked_slice>;

/// Returns a text such as "space 1, pool 0, rank 0, chunk 0f1e2d3c4b5a6978".
std::string text_of(const object_key& key);

/// Asks for the next slice of a tier's walk.
struct check_tier_request {
  uint64_t walk = 0; ///< 0: begins a walk, and ends any other; then no object is looked at yet
};
struct held_object {
  object_id id{};
  object_key key;
  uint64_t physical_bytes = 0;
  uint32_t holds = 0;
  bool touched = false;
};
struct check_tier_answer {
  error failure; ///< `gone`: another walk has begun
  uint64_t walk = 0;
  bool last = false;
  uint64_t objects = 0; ///< objects looked at
  /// How many of these were not compared with the allocator, which was making room all the time.
  uint64_t not_compared = 0;
  std::vector<std::string> differences;
  std::vector<held_object> held;
};

/// Tells how these objects are held now, in parallel; those that are gone have no holds.
struct check_held_request {
  std::vector<object_id> ids;
};
struct check_held_answer {
  error failure;
  std::vector<held_object> held;
  bool releasing = false; ///< holds that have ended are still counted, because they are released part by part
  uint64_t writing_bytes = 0;
};

/// Tells the tier that the walk is over.
struct end_check_notice {
  uint64_t walk = 0;
};

/// The tier sends it to itself, in builds that check all the time.
struct check_slice_notice {};

/// The tier sends it to the policy.
struct check_policy_request {
  slice_ptr slice;
};
/// The tier sends it to the allocator.
struct check_space_request {
  slice_ptr slice;
};
struct check_space_answer {
  error failure;
  bool lent = false; ///< the allocator's space is with the tier: nothing was compared
  std::vector<std::string> differences;
  allocator_usage usage;
};
struct check_answer_texts {
  error failure;
  std::vector<std::string> differences;
};

/// Asks write-through whether anything waits to be written.
struct check_writes_request {};
struct check_writes_answer {
  error failure;
  bool idle = false;
};

} // namespace terrace
