// Waiting for other requests that write the same objects.
#pragma once

#include "base/error.hpp"
#include "base/request_context.hpp"
#include "tier/objects/object_batch.hpp"

namespace terrace {

/// The answer comes when none of these keys is being written.
struct await_request {
  batch_ptr objects;
  context_ptr context;
};
struct await_answer {
  error failure;
  bool abandoned = false; ///< a writer gave up one of them; otherwise all were written
};

} // namespace terrace
