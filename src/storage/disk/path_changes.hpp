// Changes of a disk tier's index, divided among the journals of its paths, and their answers combined.
//
// Pure: the disk set sends the parts.
#pragma once

#include "base/error.hpp"
#include "index/volume_id.hpp"
#include "memory/path_map.hpp"
#include "tier/objects/index_keeping.hpp"

#include <vector>

namespace terrace {

/// Returns the changes by path. A path gets the changes of its own objects, and every path gets the spaces
/// that are gone; empty: nothing changed.
std::vector<index_changes> divide(const index_changes& what, const path_map& paths);

/// Combines the failures among the answers of several paths.
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

/// Makes the answer of a disk tier to `forget_request` from the answers of its journals. `left_out`: the
/// volume has paths that are not in service, and therefore did not record it.
forget_answer sum_of(const std::vector<forget_answer>& answers, const volume_id& volume, bool left_out);

} // namespace terrace
