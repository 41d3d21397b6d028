// Messages to the journal of a path, beside those of its tier (tier/objects/index_keeping.hpp).
#pragma once

#include "tier/objects/index_keeping.hpp"

namespace terrace {

/// The disk set sends it when the tier no longer changes. (delayed: until a checkpoint contains everything,
/// or could not be written)
struct close_journal_request {};
struct close_journal_answer {
  error failure;
};

} // namespace terrace
