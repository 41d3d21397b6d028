// Determines which files make up a volume on one or several paths, and what each file becomes when the volume
// is opened.
//
// Every path's file is a volume of its own, with its superblock, journal and objects; each object is
// contained in one file. They are one volume through the volume id, their number and their order, which every
// superblock contains, and the epoch, which is raised in all of them together. Pure: `extent_file::open_all`
// reads the files and executes the plan.
#pragma once

#include "index/object_header.hpp"
#include "storage/superblock.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace {

/// Says what to do with files that are not the expected volume.
enum class mismatch_rule : uint8_t {
  refuse, ///< change nothing
  adapt, ///< accept added, removed and reordered paths: keep what belongs to the volume, create missing files
  wipe,  ///< like `adapt`, and overwrite everything that does not belong to the volume
};

struct found_path {
  enum class kind : uint8_t {
    missing, ///< the file does not exist
    blank,   ///< empty or zeroed: created, emptied or wiped, not yet a volume
    volume,
    other,      ///< not a volume, a volume of another owner or version, or a damaged one
    unreadable, ///< cannot be opened, read or written
  };
  kind state = kind::missing;
  superblock block; ///< set for a volume
  error why;        ///< set for the last two kinds: the reason, with the path
  /// Set for a volume: what is wrong with the other copy of its superblock; empty: nothing.
  std::string damaged_copy{};
};

/// The plan for each path, parallel to what was found.
struct path_set {
  std::optional<volume_id> volume; ///< none: nothing is kept, and the caller chooses a new one
  uint64_t epoch = 1; ///< epoch of this opening, in all superblocks; higher than all epochs found
  uint64_t forgotten_below = 0;
  std::vector<space_floor> floors; ///< everything that any path was told to forget; applied to all paths
  std::vector<bool> kept;          ///< true for paths that are kept; the others start empty or are left out
  std::vector<error> left_out;     ///< why the volume is opened without this path; `ok` for the others
};

/// Errors: those of files that are not a volume or cannot be read; `denied` if files do not belong together,
/// with both names and the fix. With `may_lack_paths` such a path is left out if another one contains a
/// volume; but not a path that is merely misplaced, which is a configuration mistake. `clears` are applied as
/// if one of the paths had recorded them.
result<path_set> plan_paths(std::span<const std::string> names, std::span<const found_path> found,
                            mismatch_rule rule, bool may_lack_paths = false,
                            std::span<const pending_clear> clears = {});

} // namespace terrace
