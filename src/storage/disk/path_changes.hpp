// Changes of a disk tier's index, divided among the journals of its paths, and their answers combined.
//
// Pure: the disk set sends the parts.
#pragma once

#include "base/error.hpp"
#include "memory/path_map.hpp"
#include "index/volume_id.hpp"
#include "tier/objects/index_keeping.hpp"

#include <vector>

namespace terrace {

/// By path. A path gets what happened to its objects, and every path the spaces that are gone; empty: nothing.
std::vector<index_changes> divide(const index_changes& what, const path_map& paths);

/// The failures among the answers of several paths, as one.
template <class Answer>
error failures_of(const std::vector<Answer>& answers) {
  error sum;
  for (const Answer& one : answers)
    if (one.failure.code != errc::ok) {
      sum.code = one.failure.code;
      sum.text += (sum.text.empty() ? "" : "; ") + one.failure.text;
    }
  return sum;
}

/// The answer of a disk tier to `forget_request`, from those of its journals. `left_out`: the volume has paths that
/// are not in service, and therefore do not know of it.
forget_answer sum_of(const std::vector<forget_answer>& answers, const volume_id& volume, bool left_out);

} // namespace terrace
