// Messages to the policy of a trust group: the notes of its tiers, and what others send beside the tiers' own conversation
// (tier/messages.hpp); and messages to its shadows.
#pragma once

#include "base/eviction_types.hpp"
#include "base/ids.hpp"
#include "base/object_key.hpp"
#include "base/tier_properties.hpp"
#include "index/prefix_resolver.hpp"
#include "index/space_registry.hpp"
#include "policy/shadow_cache.hpp"
#include "tier/objects/object_source.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

// The events of a tier, as its policy is told of them.

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
  /// A `hit` is an access to so many entries of a chain, of which this is the last.
  uint32_t entries = 1;
  static constexpr uint32_t entries_max = 128; ///< limits the work that a note makes
};
/// One batch per request, in the order of access: last chunk first.
struct policy_notes {
  tier_kind tier = nowhere;
  std::vector<policy_note> notes;
  /// The inference that insertions are for: `inference_begin` reported its access to them.
  uint64_t inference = 0;
};

/// The preparer sends it: residents recovered after a restart, root first. The policy answers when it has
/// processed them, so that millions of them do not wait in its mailbox.
struct restored_request {
  policy_notes found;
  size_t follow = 0; ///< in the first one: the number of residents in all; 0 in the others
};
struct restored_answer {
  error failure;
};

/// A tier sends it after some batches of notes; the policy returns it when it has applied them.
struct notes_mark {};

/// A connection sends it with the first request of an inference that leases or loads: its whole chain,
/// present or not. It counts as the inference's only access to these objects, in all tiers. It has no effect
/// for an inference that has already begun.
struct inference_begin {
  uint64_t inference = 0;
  object_source objects; ///< root first
  request_hints hints;
  std::optional<policy_time> told; ///< time by the client's clock
};

/// The policy sends it to itself for the next part of a long chain.
struct uses_notice {};

/// A connection sends it with what was reported at the end of an inference. It has no effect for an unknown inference.
struct inference_end {
  uint64_t inference = 0;
  request_outcome outcome;
  std::optional<policy_time> told; ///< time by the client's clock
};
/// Asks how many of these, from the first on, the tier should admit (eviction_tracker::admitted).
struct admit_request {
  tier_kind tier = nowhere;
  admission_rule rule = admission_rule::always;
  std::vector<entry_info> entries;
};
struct admit_answer {
  error failure;
  size_t admitted = 0;
};

/// Sets the policy of a tier. Its residents stay. `not_found`: the group has no such tier.
struct set_policy_request {
  tier_kind tier = nowhere;
  std::string policy;
};
struct set_policy_answer {
  error failure;
  std::string before;
};
/// Describes the outcome for the log.
inline std::string describe_change(const std::string& group, const set_policy_request& wanted,
                                   const set_policy_answer& done) {
  std::string text = "group " + group + ": the policy of " + to_string(wanted.tier);
  return done.failure.code != errc::ok ? text + " was not changed: " + done.failure.text
                                       : text + " is " + wanted.policy + " now; it was " + done.before;
}

struct policies_request {};
struct policies_report {
  struct tier {
    tier_kind kind = nowhere;
    std::string policy;
    uint64_t residents = 0;
  };
  error failure;
  std::vector<tier> tiers;
  uint64_t tracked = 0;
  uint64_t ghosts = 0;
  uint64_t bookkeeping_bytes = 0;
  /// The names of all policies that a tier may have; never destroyed.
  std::span<const std::string_view> known;
};

/// A connection sends it: a requested chain, present or not.
struct shadow_use {
  space_ptr space;
  std::shared_ptr<const chunk_prefix> prefix;
  std::optional<uint16_t> rank; ///< absent: all ranks
  uint64_t inference = 0;       ///< 0: not given
  request_hints hints;
  std::optional<policy_time> told; ///< time by the client's clock
};
/// A connection sends it when its tiers were cleared.
struct shadow_clear {
  std::optional<space_id> space; ///< absent: all spaces
};

struct shadow_request {};
struct shadow_report {
  struct line {
    std::string policy;
    uint64_t capacity_bytes = 0;
    uint64_t used_bytes = 0;
    uint64_t residents = 0;
    uint64_t bookkeeping_bytes = 0;
    shadow_counts counts;
  };
  error failure;
  std::vector<line> lines;
};

} // namespace terrace
