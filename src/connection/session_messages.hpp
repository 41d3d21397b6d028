// Sessions of a trust group, by id.
#pragma once

#include "base/error.hpp"
#include "session/session_table.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

struct open_session_request {
  session_opening what;
};
struct open_session_answer {
  error failure;
};

/// A turn begins that will end at `tokens`; 0: it is only looked at.
struct use_session_request {
  session_id id;
  uint64_t tokens = 0;
};
struct use_session_answer {
  error failure;
  session_use found;
};

struct save_session_request {
  session_id id;
  uint64_t generation = 0;
  session_state_ptr after;
};
struct save_session_answer {
  error failure; ///< always `ok`: what became of the turn is an outcome
  turn_outcome outcome = turn_outcome::saved;
};

struct close_session_request {
  session_id id;
};
struct close_session_answer {
  error failure;
  bool closed = false;
};

struct sessions_request {
  size_t count_max = 0; ///< of `listed`
};
struct sessions_answer {
  error failure;
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t evicted = 0;
  std::vector<session_report> listed;
};

} // namespace terrace
