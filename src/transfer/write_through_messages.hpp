// Messages to the write-through of a tier below the first.
#pragma once

#include "base/error.hpp"
#include "base/eviction_types.hpp"
#include "index/space_registry.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/space/write_credit.hpp"
#include "transfer/windows.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace terrace {

/// Returns a credit that has ended (tier/space/write_credit.hpp).
struct write_credit_notice {
  uint64_t bytes = 0;
};

/// Published host objects that should also be written to disk. The hold keeps them until they are, or cannot
/// be.
struct write_through_notice {
  space_ptr space;
  batch_ptr objects;
  hold_ptr held;
  /// Null: the objects were accessed again, so a disk that rejected them may admit them now. Such a notice is
  /// dropped if there is no credit for it.
  credit_ptr credit;
  std::vector<uint64_t> checksums{}; ///< of the held payloads, parallel to the objects; empty: unknown
  /// Objects with these keys may replace them in host memory before they are written.
  bool replaceable = false;
  /// Set by the write-through itself for a `demote_request`: called when nothing more is done.
  std::function<void(demote_answer)> ended{};
};

/// From the supervisor, when there are no more stores. (delayed: until nothing waits to be written)
struct finish_writes_request {};
struct finish_writes_answer {
  error failure;
};

/// From the supervisor, after a reload: how much may be written to the tier from now on.
struct write_budget_notice {
  write_rates rates;
};

// A long window of a transfer, told to the tiers below in parts: they take each as a whole, or not at all.

/// Parts of whole chunks of `objects_per_chunk` objects, each at most `bytes_max` of an arena, but at least a chunk. They share the
/// hold and the credit, which end with the last of them. Precondition: nobody waits for the notice's end.
inline std::vector<write_through_notice> parts_of(write_through_notice whole, size_t objects_per_chunk,
                                                  uint64_t bytes_max) {
  assert(!whole.ended);
  std::vector<write_through_notice> parts;
  const size_t all = whole.objects->size();
  for (size_t begin = 0; begin != all;) {
    auto window = window_at(whole.objects, objects_per_chunk, begin, bytes_max);
    if (begin == 0 && window.end == all) {
      parts.push_back(std::move(whole));
      break;
    }
    auto sums = whole.checksums.begin();
    write_through_notice& part = parts.emplace_back();
    part.space = whole.space;
    part.objects = window.objects;
    part.held = part_of(whole.held, begin, window.end);
    part.credit = whole.credit;
    part.replaceable = whole.replaceable;
    if (!whole.checksums.empty())
      part.checksums.assign(sums + static_cast<ptrdiff_t>(begin), sums + static_cast<ptrdiff_t>(window.end));
    begin = window.end;
  }
  return parts;
}

} // namespace terrace
