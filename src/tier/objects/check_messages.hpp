// Checks of a tier: its objects as they are, sent to those who know of the same objects. A message of the tier follows all
// that it has sent before, so whoever receives it must know exactly these objects: nothing waits meanwhile.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/object_key.hpp"
#include "index/object_id.hpp"
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
  /// Whether the policy has to know it as pinned.
  enum class pin : uint8_t { no, yes, either } pinned = pin::either;
  uint32_t holds = 0;
  bool touched = false; ///< it changed since the walk began
};

/// Some of them, and how many there are in all.
struct checked_slice {
  tier_kind tier = tier_kind::none;
  std::vector<checked_object> objects;
  uint64_t published_in_all = 0;
  uint64_t extents_in_all = 0; ///< of objects, and of those that left in a round that has not ended
  uint64_t bytes_in_all = 0;   ///< of these, physical
};
using slice_ptr = std::shared_ptr<const checked_slice>;

/// "space 1, pool 0, rank 0, chunk 0f1e2d3c4b5a6978"
std::string text_of(const object_key& key);

/// The next slice of a tier's walk.
struct check_tier_request {
  uint64_t walk = 0; ///< 0: begins one, and ends any other; then nothing is looked at yet
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
  uint64_t objects = 0;      ///< looked at
  uint64_t not_compared = 0; ///< of these, with the allocator, which was making room all the time
  std::vector<std::string> differences;
  std::vector<held_object> held;
};

/// How these objects are held now, parallel; those that are gone have no holds.
struct check_held_request {
  std::vector<object_id> ids;
};
struct check_held_answer {
  error failure;
  std::vector<held_object> held;
  bool releasing = false; ///< holds that have ended are still counted, part by part
  uint64_t writing_bytes = 0;
};

/// The walk is over.
struct end_check_notice {
  uint64_t walk = 0;
};

/// A tier's own, in builds that check all the time.
struct check_slice_notice {};

/// To the policy.
struct check_policy_request {
  slice_ptr slice;
};
/// To the allocator.
struct check_space_request {
  slice_ptr slice;
};
struct check_space_answer {
  error failure;
  bool lent = false; ///< its space is with the tier: nothing was compared
  std::vector<std::string> differences;
  allocator_usage usage;
};
struct check_answer_texts {
  error failure;
  std::vector<std::string> differences;
};

/// To write-through: is anything waiting to be written?
struct check_writes_request {};
struct check_writes_answer {
  error failure;
  bool idle = false;
};

} // namespace terrace
