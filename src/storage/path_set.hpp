// Which files make a volume, when it lies on one path or on several: what each of them becomes when the volume is opened.
//
// Every path's file is a volume of its own, with its superblock, its journal and its objects, each of which lies wholly in
// it. What makes them one are the volume's id, their number and their order, which stand in every superblock, and the
// epoch, which goes up in all of them together. Pure: `extent_file::open_all` reads the files and does what is said here.
#pragma once

#include "storage/pending_clear.hpp"
#include "storage/superblock.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace {

/// What to do with files that are not the volume that was expected.
enum class mismatch_rule : uint8_t {
  refuse, ///< nothing is touched
  adapt, ///< paths may come, go and change their order: what belongs to the volume is kept, a missing file is made
  wipe, ///< as `adapt`, and whatever does not belong to the volume is overwritten
};

struct found_path {
  enum class kind : uint8_t {
    missing, ///< there was no file
    blank,   ///< nothing stands in it: made, emptied or wiped, and no volume yet
    volume,
    other,      ///< bytes that are no volume, a volume of another owner or version, a damaged one
    unreadable, ///< it could not be opened, read or written
  };
  kind what = kind::missing;
  superblock block; ///< of a volume
  error why;        ///< of the last two: what it is, naming the path
};

/// What the paths become, parallel to what was found.
struct path_set {
  std::optional<volume_id> volume; ///< nothing is kept: choose one
  uint64_t epoch = 1;              ///< of this opening, in all superblocks; higher than all that were found
  uint64_t forgotten_below = 0;
  std::vector<space_floor> floors; ///< what any of the paths has been told to forget, all of them forget
  std::vector<bool> kept;          ///< the others begin empty, or are left out
  std::vector<error> left_out;     ///< why the volume goes on without this path; `ok` for those that it has
};

/// Errors: those of the files that are no volume or cannot be read; `denied` when files do not belong together, naming both and
/// what to do. With `may_lack_paths` such a path is left out, if any other is of a volume; but not one that is only not where it
/// belongs, which is a mistake in the configuration. What `clears` say of the volume is forgotten as if one of its paths said it.
result<path_set> plan_paths(std::span<const std::string> names, std::span<const found_path> found,
                            mismatch_rule rule, bool may_lack_paths = false,
                            std::span<const pending_clear> clears = {});

} // namespace terrace
