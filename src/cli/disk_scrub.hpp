// Reads every live object of a volume and compares it with the index.
#pragma once

#include "cli/console.hpp"
#include "cli/json.hpp"
#include "storage/object_check.hpp"
#include "storage/offline_volume.hpp"

#include <array>
#include <string>
#include <vector>

namespace terrace::cli {

struct scrub_finding {
  index_record object;
  checked_object found;
};

struct scrub_result {
  std::array<uint64_t, 4> objects{}; ///< by object_state
  uint64_t bytes_read = 0;
  double seconds = 0;
  std::vector<scrub_finding> findings; ///< all objects that are not intact, by offset
  bool interrupted = false;

  uint64_t of(object_state state) const { return objects[static_cast<size_t>(state)]; }
  uint64_t checked() const { return objects[0] + objects[1] + objects[2] + objects[3]; }
  uint64_t bad() const { return of(object_state::damaged) + of(object_state::unreadable); }
};

/// Reads objects in order of their offsets, on `jobs` threads with one read of some MiB each.
scrub_result scrub(volume_reader& from, const volume_inspection& is, size_t jobs, const interruption& stop,
                   console& to);

/// `list`: the number of findings to show, 0 for all.
std::string format_scrub(const std::string& path, const volume_inspection& is, const scrub_result& scrubbed,
                         size_t list);
json to_json(const std::string& path, const volume_inspection& is, const scrub_result& scrubbed, size_t list);

} // namespace terrace::cli
