// Values of Redis clients in the tiers of their trust group: found, brought into host memory, replaced and removed.
//
// A key has one value, which a later one replaces, so that a store is more than a publication: whatever tiers have under the
// key goes first, and nothing that is under way may bring it back. Who has reserved the key in host memory is the only one
// who writes it; see `reserve_values`.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "runtime/task.hpp"
#include "tier/space/acquire.hpp"
#include "tier/objects/tier_hold.hpp"

#include <caf/actor.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace terrace::actors {

/// What the functions here are for: some keys of one client.
struct value_subject {
  group_ptr group;
  space_ptr in;
  batch_ptr objects; ///< with the sizes of the values, if they are stored
  context_ptr context;
};

/// Where values were found, held there. Each of `holds` is parallel to the objects.
struct found_values {
  tier_holds holds; ///< fastest tier first

  /// Null if no tier has it; otherwise the fastest one that does.
  const tier_hold* of(size_t value) const {
    for (const tier_hold& one : holds)
      if (one.held->places()[value].present())
        return &one;
    return nullptr;
  }
};

/// A value in host memory, as long as `owner` exists.
struct held_value {
  object_place place;
  keep_alive owner;
};

/// Space for values of which no tier has an earlier one.
struct reserved_values {
  acquire_answer space; ///< every object is `reserved`
  struct credit_of {
    write_through_actor to;
    credit_ptr credit;
  };
  std::vector<credit_of> credits;
};

} // namespace terrace::actors
