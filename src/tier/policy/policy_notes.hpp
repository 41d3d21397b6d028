// The events of a tier, as its policy is told of them.
#pragma once

#include "base/ids.hpp"
#include "base/object_key.hpp"
#include "base/tier_properties.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

enum class note_kind : uint8_t {
  insert,
  hit,
  erase,
  evict, ///< like `erase`, to make room
  pin,
  unpin
};
struct policy_note {
  note_kind kind;
  entry_key key;
  entry_key parent;
  uint64_t bytes = 0;
};
/// One batch per request, in the order of access: last chunk first.
struct policy_notes {
  tier_kind tier = nowhere;
  std::vector<policy_note> notes;
  /// The inference that insertions are for: `inference_begin` reported its access to them.
  uint64_t inference = 0;
};

} // namespace terrace
