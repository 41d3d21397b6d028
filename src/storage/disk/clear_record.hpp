// Clears of a volume that cannot record them now: written to the state directory, and applied when it is opened
// (disk_opening.hpp).
#pragma once

#include "base/error.hpp"
#include "index/pending_clear.hpp"
#include "storage/disk/volume_state.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace terrace {

/// A connection sends it. (delayed: until it is durable)
struct remember_clear_request {
  pending_clear what;
};
struct remember_clear_answer {
  error
      failure; ///< `busy`: the volume is being opened; otherwise the volume, and why the clear cannot be kept
};

/// True if the clear would be applied. A clear of one known volume only waits for its next opening. A clear
/// of any volume that the files contain is useless once they are being opened.
bool still_needed(const pending_clear& clear, disk_phase now);

/// Records the clear for each of the volume's files; blocks on the file system. If the volume is turned off,
/// only existing files get a record: the volume may be turned on again, and without a file there is nothing
/// to forget. `phase` is asked again while nobody can open the files.
remember_clear_answer remember_clear(const std::string& state_directory, std::vector<std::string> files,
                                     const pending_clear& clear, const std::function<disk_phase()>& phase);

} // namespace terrace
