#include "storage/disk/path_changes.hpp"

#include <algorithm>

namespace terrace {

std::vector<index_changes> divide(const index_changes& what, const path_map& paths) {
  std::vector<index_changes> own(paths.paths());
  if (own.size() == 1) {
    own.front() = what;
    return own;
  }
  for (const index_change& change : what.changes)
    own[paths.path_of(change.record.offset)].changes.push_back(change);
  for (index_changes& part : own) {
    if (!part.changes.empty())
      part.of = what.of;
    part.gone = what.gone;
  }
  return own;
}

forget_answer sum_of(const std::vector<forget_answer>& answers, const volume_id& volume, bool left_out) {
  forget_answer sum;
  sum.failure = failures_of(answers);
  for (const forget_answer& one : answers)
    sum.epoch = std::max(sum.epoch, one.epoch);
  if (left_out || sum.failure.code != errc::ok)
    sum.missed = volume;
  return sum;
}

} // namespace terrace
