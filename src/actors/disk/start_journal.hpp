// The first message to the keeper of a tier's index.
#pragma once

#include "storage/disk/journal_messages.hpp"
#include "tier/objects/journal_tally.hpp"

#include <caf/typed_actor.hpp>

namespace terrace::actors {

/// From a durable tier to its disk set, and from there to all journals, as the first message: the tier whose
/// index they keep.
struct start_journal {
  caf::typed_actor<caf::replies_to<image_request>::with<image_answer>> tier;
  std::vector<journal_tally>
      recorded; ///< by path: what is recorded of the index, for checks; empty: not known
};

} // namespace terrace::actors
