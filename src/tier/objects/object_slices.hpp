// Slices of object batches.
#pragma once

#include "tier/objects/object_batch.hpp"

namespace terrace {

/// Returns objects [begin, end) of a batch; the batch itself if that is all of it.
batch_ptr slice(const batch_ptr& all, size_t begin, size_t end);

} // namespace terrace
