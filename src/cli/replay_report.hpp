// The summary of a replay.
#pragma once

#include "cli/json.hpp"
#include "cli/replay_counts.hpp"

#include <string>

namespace terrace::cli {

struct replay_summary {
  replay_counts counts;
  double seconds = 0;
  size_t clients = 1;
  uint64_t object_bytes = 0;
  std::string mode; ///< "mapped" or "daemon"
};

std::string format_summary(const replay_summary& summary);
json to_json(const replay_summary& summary);

} // namespace terrace::cli
