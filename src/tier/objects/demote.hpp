// Writes objects of a tier to a tier below, at the request of the tier that has them.
#pragma once

#include "base/error.hpp"
#include "index/space_registry.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/space/write_credit.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

/// Why an object was not written to the tier below.
enum class demotion_failure : uint8_t {
  admission, ///< rejected by the admission rule
  endurance, ///< the daily write budget is used up
  degraded,  ///< the device is out of service, or the tier has not joined yet
  failed,    ///< it could not be written
  no_room,   ///< the tier is full, and nothing there can be evicted
  quota,     ///< its tenant may have no more there
};
constexpr size_t demotion_failures = 6;

/// The results for some objects. Objects that the tier below had already are in neither count.
struct demotion_tally {
  uint64_t objects = 0; ///< written
  uint64_t bytes = 0;   ///< bytes of their payload
  std::array<uint64_t, demotion_failures> lost{};

  void lose(demotion_failure why, uint64_t count) { lost[static_cast<size_t>(why)] += count; }
  uint64_t lost_in_all() const {
    uint64_t sum = 0;
    for (uint64_t each : lost)
      sum += each;
    return sum;
  }
  void add(const demotion_tally& more) {
    objects += more.objects;
    bytes += more.bytes;
    for (size_t i = 0; i < lost.size(); ++i)
      lost[i] += more.lost[i];
  }
};

/// When a demotion is written, and what that costs.
enum class demotion_turn : uint8_t {
  first,     ///< before all others: a round of eviction waits for it
  in_turn,   ///< after those that wait, without a credit: the sender has one demotion at a time
  if_credit, ///< in turn at the cost of a credit, or not at all
};

/// A tier or a move sends it to the write-through of another tier, which writes the objects out of the memory that is
/// held. (delayed: until each is written, or will not be)
struct demote_request {
  space_ptr in;
  batch_ptr objects;
  hold_ptr held;
  demotion_turn turn = demotion_turn::first;
  credit_ptr credit{}; ///< with `if_credit`: that one; null: one is taken
};
struct demote_answer {
  error failure;
  demotion_tally done;
  bool stalled = false; ///< the device may still read the memory, so the hold does not end soon
  hold_ptr arrived{};   ///< in a write to host memory: holds what was written until the demotion is over
};

/// The hold of a `demote_request` sends it: nothing reads the memory of these objects any more.
struct written_notice {
  uint64_t demotion = 0; ///< number of the demotion, and of its batch
  size_t batch = 0;
  std::vector<object_id> ids;
};

/// The supervisor sends it at the end: write the objects that only this tier has. (delayed: until that is
/// done, or at `until`)
struct write_down_request {
  std::chrono::steady_clock::time_point until;
};
struct write_down_answer {
  error failure;
  bool complete = true; ///< false: there was no time for all
};

} // namespace terrace
