// A prefetch: which objects it brings into host memory or a faster tier, window by window, and how far it has come.
//
// Pure: the prefetch actor works on several windows at a time, which may end in any order. Used by one thread at a time.
#pragma once

#include "base/keep_alive.hpp"
#include "base/request_context.hpp"
#include "base/tier_properties.hpp"
#include "index/prefix_plan.hpp"
#include "index/space_registry.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_batch.hpp"
#include "transfer/arrival_counters.hpp"
#include "transfer/mover_messages.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace terrace {

/// The chunks of a prefix, on all ranks.
struct prefetch_subject {
  context_ptr context; ///< `ahead` is set. Ends last, as that of a load does
  space_ptr space;
  std::shared_ptr<const std::vector<digest>> chunks;
  std::optional<digest> before; ///< the chunk before the first, if known
  uint64_t first_token = 0;
  uint64_t prompt_tokens = 0;
  bool waits = false;         ///< for memory; otherwise it ends where none can be made at once
  bool note_access = true;    ///< unless an inference was reported
  keep_alive held_by;         ///< the lease of the chunks; may be null
  tier_kind to = memory_tier; ///< or a faster one, which everything reaches through host memory
  std::shared_ptr<const arrival_counters> arrivals; ///< one; null: none
  read_limit read_by = read_limit::max(); ///< what has not come from below by then is left to the client
};

/// Why it went no further.
enum class prefetch_end : uint8_t {
  complete,  ///< all that was expected is in the tier
  cancelled, ///< or its client has ended
  deadline,
  no_room, ///< in the tier or in host memory, or requests that clients wait for need it
  lost,    ///< an object could not be read, or has been evicted or cleared since it was found
};

/// For what ended its request, or a step of it.
prefetch_end end_for(errc why);

/// In chunks. By tier: where the chunk was found, which is the slowest tier of its objects.
struct prefetch_share {
  uint32_t found = 0;
  uint32_t expected = 0;
  uint32_t delivered = 0;
};

struct prefetch_result {
  error failure;
  uint32_t requested = 0;
  uint32_t late = 0; ///< chunks that did not come in time; they count as neither found nor expected
  prefetch_share all;
  std::array<prefetch_share, tier_kinds> by_tier{}; ///< by tier_kind
  prefetch_end end = prefetch_end::complete;
  std::optional<prefix_object> missing; ///< the first object that is not delivered, if one was lost
  bool damaged = false;                 ///< it could not be read, or its bytes were wrong
};

/// How many of the found chunks a prefetch brings: so many that what comes into the tier takes at most `bytes` there, headers
/// and padding included. A chain that evicts its own beginning would be of no use.
uint32_t chunks_that_fit(const space_spec& spec, const prefix_plan& plan, uint64_t bytes,
                         tier_kind to = memory_tier);

class prefetch_plan {
 public:
  /// `found`: what was found. `expected`: of that, what is brought (`chunks_that_fit`). `window_bytes`: of host memory,
  /// for all windows in progress together.
  prefetch_plan(prefetch_subject subject, const prefix_plan& found, const prefix_plan& expected,
                uint64_t window_bytes);

  const prefetch_subject& subject() const { return of_; }

  /// Windows that may be in progress at a time.
  static constexpr size_t windows_max = 8;

  /// After so many rounds in which others kept taking or abandoning what a window waits for, it counts as lost.
  static constexpr int rounds_max = 16;

  /// Whole chunks; only the objects that the prefix needs.
  struct window {
    batch_ptr objects;
    std::vector<uint32_t> chunks; ///< parallel: of the prefix
    bool below = false;           ///< some of them are in tiers below
    int rounds = 0;               ///< in which others were writing some of them
  };
  /// The next one; nullopt: there is none, or it has been stopped.
  std::optional<window> next();

  /// These objects of the window are in the tier from now on.
  void arrived(const window& part, const std::vector<bool>& there);
  /// The first object of a window that will not arrive.
  void lost(const window& part, size_t object, bool damaged);

  /// What was not announced before of the chunks that are delivered; nothing (no chunks) once it was stopped.
  arrival next_arrival();

  /// No further window begins. The first reason counts.
  void stop(prefetch_end why);
  bool stopped() const { return late_ || end_ != prefetch_end::complete; }
  /// What has not come by `read_by` does not come in time any more: the prefetch is complete without it.
  void fall_behind() { late_ = late_ || end_ == prefetch_end::complete; }

  /// As it is now.
  prefetch_result result() const;

 private:
  uint32_t delivered() const;

  prefetch_subject of_;
  chunk_layout layout_;
  std::vector<tier_kind> chunk_tiers_, object_tiers_;
  uint32_t found_;
  std::array<uint64_t, tier_kinds> found_by_tier_;
  uint32_t requested_;
  uint32_t expected_;
  uint64_t window_bytes_;      ///< of one
  uint32_t next_ = 0;          ///< chunk
  std::vector<uint32_t> left_; ///< per chunk: objects that have not arrived
  uint32_t announced_ = 0;     ///< chunks
  prefetch_end end_ = prefetch_end::complete;
  bool late_ = false;
  std::optional<prefix_object> missing_;
  bool damaged_ = false;
};

} // namespace terrace
