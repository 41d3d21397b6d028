// The first message to the keeper of a tier's index.
#pragma once

#include "storage/disk/journal_messages.hpp"
#include "tier/objects/journal_tally.hpp"

#include <caf/typed_actor.hpp>

namespace terrace::actors {

/// The first message of a durable tier to its disk set, and from there to all journals: it names the tier
/// whose index they keep.
struct start_journal {
  caf::typed_actor<caf::replies_to<image_request>::with<image_answer>> tier;
  std::vector<journal_tally> recorded; ///< recorded part of the index, by path, for checks; empty: unknown
};

} // namespace terrace::actors
