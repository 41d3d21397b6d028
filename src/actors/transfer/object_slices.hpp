// Slices of object batches.
#pragma once

#include "actors/messages.hpp"

namespace terrace::actors {

/// Objects [begin, end) of a batch; the batch itself if that is all of it.
batch_ptr slice(const batch_ptr& all, size_t begin, size_t end);

} // namespace terrace::actors
