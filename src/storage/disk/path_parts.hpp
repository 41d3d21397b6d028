// A read or write of objects of a disk tier, divided among its paths, and their answers combined.
//
// Pure: the disk set sends the parts. Used by one thread at a time.
#pragma once

#include "base/error.hpp"
#include "index/object_header.hpp"
#include "memory/striped_allocator.hpp"
#include "storage/disk/disk_messages.hpp"
#include "storage/disk/disk_paths.hpp"
#include "tier/objects/index_keeping.hpp"
#include "transfer/copy_messages.hpp"
#include "transfer/mover_messages.hpp"

#include <cstddef>
#include <vector>

namespace terrace {

// Changes of a disk tier's index, divided among the journals of its paths, and their answers combined.
//
// Pure: the disk set sends the parts.

/// Returns the changes by path. A path gets the changes of its own objects, and every path gets the spaces
/// that are gone; empty: nothing changed.
std::vector<index_changes> divide(const index_changes& changes, const path_map& paths);

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

class path_parts {
 public:
  path_parts(const disk_paths& paths, disk_direction direction, const moved_objects& moved);

  /// The paths that have a part, ascending.
  std::vector<size_t> paths() const;
  /// Precondition: the path has a part. Call once per path.
  disk_request take(size_t path) { return std::move(parts_[path]); }

  void add(size_t path, const disk_answer& answer);
  /// The disk of a path has ended.
  void fail(size_t path, error why) { add(path, {std::move(why), {}}); }

  /// Call when all parts are answered. Objects that were read are not verified yet.
  move_answer outcome() const;

 private:
  disk_direction direction_;
  std::vector<disk_request> parts_;        ///< by path
  std::vector<std::vector<size_t>> index_; ///< by path: the objects that its operations are for
  error failure_;
  std::vector<int> failed_; ///< parallel to the objects: 0 or an errno; EBUSY: nothing was tried
  std::vector<bool> away_;  ///< parallel to the objects: may be intact once the path is back in service
};

/// Makes the request to build the header blocks of the objects to write. `known` is set if the checksums of
/// all payloads are known, so that sealing reads none.
seal_request seal_of(const write_request& request, const volume_id& volume, bool& known);

/// Makes the request to verify the objects that were read; it has no objects if none were. `checked` receives
/// their indices.
check_request check_of(const read_request& request, const volume_id& volume, const move_answer& read,
                       std::vector<size_t>& checked);
/// Marks objects as failed that are not the expected ones.
void apply(const check_answer& found, const std::vector<size_t>& checked, move_answer& read);
/// Returns the indices of the objects that are not the expected ones.
std::vector<size_t> not_good(const check_answer& found, const std::vector<size_t>& checked);
/// True if another object is where this one was expected: its extent was reused, and the removal did not
/// reach the index before a crash.
bool is_superseded(const moved_object& object);

} // namespace terrace
