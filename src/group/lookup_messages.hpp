// Messages about lookups with an id, between connections and their trust group.
#pragma once

#include "group/lookup_registry.hpp"

namespace terrace {

struct begin_lookup_request {
  lookup_id id;
  context_ptr context; ///< context of the request that looks up
};
struct begin_lookup_answer {
  error failure;
};
struct finish_lookup_notice {
  lookup_id id;
  context_ptr context; ///< context of the request that looks up
  lookup_outcome_ptr outcome;
};
struct await_lookup_request {
  lookup_id id;
  context_ptr context; ///< context of the request that waits
};
struct await_lookup_answer {
  error failure;
  lookup_outcome_ptr found;
};
/// Ends a lookup in progress, or the lease of an answered lookup.
struct cancel_lookup_request {
  lookup_id id;
};
struct cancel_lookup_answer {
  error failure;
  bool found = false;
};

} // namespace terrace
