// Clears of a volume that could not be reached, kept in a directory until the volume is opened.
//
//   pending_clears clears("/var/lib/terrace");
//   clears.remember(files, {.space = fingerprint});   // durable when it returns
//   ...
//   options.clears = *clears.of(files);               // the next opening forgets what they name
//   auto volume = extent_file::open_those_there(options);
//   clears.applied(files[0], ...);                    // the volume's superblocks say it now
//
// There is one small text file per file of a volume, named after a hash of its path (docs/disk-format.md). It
// is replaced as a whole: after a crash it has either all clears or all but the last. A lock on the directory
// serializes threads and daemons. All calls may block on the file system; they are safe on any thread.
#pragma once

#include "base/error.hpp"
#include "index/object_header.hpp"
#include "storage/disk/disk_service.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace terrace {

// Clears of a volume that cannot record them now: written to the state directory, and applied when it is opened
// (disk_opening.hpp).

/// A connection sends it. (delayed: until it is durable)
struct remember_clear_request {
  pending_clear clear;
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

class pending_clears {
 public:
  /// Clears of more than this many spaces become one clear of everything.
  static constexpr size_t clears_max = 64;

  /// `folder` is created when needed. If it is empty, no clears can be recorded, and there are none.
  explicit pending_clears(std::string folder) : folder_(std::move(folder)) {}

  /// Adds the clear to those of each file, durably. `still_needed` is called under the lock; if it returns
  /// false, nothing is recorded and `busy` is returned: the volume is being opened, and its clears may have
  /// been read already. Errors: the system's.
  result<void> remember(
      std::span<const std::string> files, const pending_clear& clear,
      const std::function<bool()>& still_needed = [] { return true; }) const;

  /// Returns the clears of all these files. A record that is damaged or of an unknown version counts as a
  /// clear of everything: a cache may remove more than requested, but never less. Errors: the system's; then
  /// the volume must not be opened.
  result<std::vector<pending_clear>> of(std::span<const std::string> files) const;

  enum class outcome : uint8_t {
    kept,     ///< the volume was in the file and was opened
    made_new, ///< an empty volume was created in it
    left_out, ///< the volume was opened without it
  };
  /// The volume was opened with the clears `of` these files, and its superblocks are durable: removes the
  /// clears that are settled. Clears of another volume stay. `epoch` is that of the opening. Errors: the
  /// system's; then the clears stay and are applied again.
  result<void> applied(const std::string& file, outcome ended, const volume_id& volume, uint64_t epoch) const;

  /// Returns the path of the record of a file's clears.
  std::string record_of(const std::string& file) const;

 private:
  std::string folder_;
};

} // namespace terrace
