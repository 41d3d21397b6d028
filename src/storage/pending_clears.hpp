// The clears that wait for a volume which could not be reached, kept in a folder that can be.
//
//   pending_clears clears("/var/lib/terrace");
//   clears.remember(files, {.space = fingerprint});   // durable when it returns
//   ...
//   options.clears = *clears.of(files);               // the next opening forgets what they name
//   auto volume = extent_file::open_those_there(options);
//   clears.applied(files[0], ...);                    // the volume's superblocks say it now
//
// There is one small text file for each file of a volume, named after a hash of its path (docs/disk-format.md). It is replaced
// as a whole: after a crash it has either all clears or those before the last one. A lock on the folder keeps threads and daemons apart.
// All calls block for as long as the file system likes; any thread.
#pragma once

#include "base/error.hpp"
#include "storage/pending_clear.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace terrace {

class pending_clears {
 public:
  /// More spaces than this become one clear of everything.
  static constexpr size_t clears_max = 64;

  /// `folder` is made when it is needed. Empty: nothing can be remembered, and nothing is.
  explicit pending_clears(std::string folder) : folder_(std::move(folder)) {}

  /// Adds the clear to those of each file, durably. `still_needed` is asked under the lock; when it is false, nothing is
  /// remembered and `busy` is returned: the volume is being opened, and whoever opens it may have read the clears already.
  /// Errors: the system's.
  result<void> remember(
      std::span<const std::string> files, const pending_clear& clear,
      const std::function<bool()>& still_needed = [] { return true; }) const;

  /// The clears of all these files. A record that is damaged, or of an unknown version, is a clear of everything: a cache may forget
  /// more than it was asked to, never less. Errors: the system's; then the volume must not be opened.
  result<std::vector<pending_clear>> of(std::span<const std::string> files) const;

  enum class outcome : uint8_t {
    kept,     ///< the volume was in the file and was opened
    made_new, ///< an empty volume was made in it
    left_out, ///< the volume was opened without it
  };
  /// The volume was opened with the clears `of` these files, and its superblocks are durable: what is settled is removed. What waits
  /// for another volume stays. `epoch`: of the opening. Errors: the system's; then the clears stay and apply once more.
  result<void> applied(const std::string& file, outcome what, const volume_id& volume, uint64_t epoch) const;

  /// Where the clears of a file are.
  std::string record_of(const std::string& file) const;

 private:
  std::string folder_;
};

} // namespace terrace
