// The preallocated files that hold a disk tier's extents, one for each path.
//
//   auto file = extent_file::open({.path = "/var/lib/terrace/disk0", .capacity_bytes = 64ULL << 30, .boot =
//   boot});
//   ... read and write at file->extents_begin() + extent.offset through file->fd() ...
//
// `open` makes file-system calls that block for as long as the device likes (allocating, locking, syncing):
// it is called from a detached actor, never on a worker. Everything else is a plain read of a member.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/unique_fd.hpp"
#include "storage/path_set.hpp"
#include "storage/superblock.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

struct extent_file_options {
  std::string path;
  uint64_t capacity_bytes =
      0;              ///< of the whole file, all of it allocated; rounded down to 4 KiB; at least 1 MiB
  bool direct = true; ///< try O_DIRECT
  /// Start over with an empty volume where there is something else: bytes that are no volume, a volume of another version
  /// or owner, or one that is damaged. Otherwise that is refused and left as it is.
  bool wipe_foreign = false;
  volume_owner owner;
  boot_id boot; ///< of this daemon; for whoever looks at the file later
};

/// A volume on several paths: a file for each.
struct extent_files_options {
  std::vector<std::string> paths; ///< in their order; at least one, at most `superblock::paths_max`
  uint64_t capacity_bytes = 0;    ///< of each file, as above
  bool direct = true;
  mismatch_rule on_mismatch = mismatch_rule::refuse;
  volume_owner owner;
  boot_id boot;
  std::vector<pending_clear> clears{}; ///< that the volume has not heard of (pending_clears.hpp)
};

struct open_volume;

/// An open volume, or one path of it. It holds an exclusive lock, so two daemons never share a file; both end with the object.
/// Opening raises the epoch, so that generations of this opening are new. What the volume holds is found out by
/// `recover` (recovery.hpp) and kept up to date by `index_journal`. A file that is shrunk so far that its metadata would
/// take more than a quarter starts over empty.
class extent_file {
 public:
  /// Errors: `bad_request` (options), `busy` (another process has the volume open), `no_space` (naming path,
  /// wanted and available bytes), `denied` (permissions; a file that is no volume; a volume of another owner), `unsupported`
  /// (not a regular file; a file system without fallocate; a volume of another version), `internal` (damaged
  /// superblock, I/O errors). A failure leaves a file that existed at its former size, and none behind that
  /// did not.
  static result<extent_file> open(const extent_file_options& options);

  /// All paths of a volume, in their order. All are locked and looked at before any is changed; what each may be is said in
  /// path_set.hpp. They have one volume id and one epoch, and forget what any of them was told to forget. Errors: as
  /// `open`, and `denied` for files that do not belong together; then all of them are left as `open` leaves one.
  static result<std::vector<extent_file>> open_all(const extent_files_options& options);

  /// Those paths of a volume that can be opened, as long as one of them holds it: the others are left out and left as they
  /// are, and the superblocks of those that are open say so. They come back with a later opening, which tells them what was
  /// forgotten meanwhile. Errors: `busy`, for another process ends; `denied` where the paths are in another order, of another
  /// number, or copies; and as above, where no path is of a volume yet.
  static result<open_volume> open_those_there(const extent_files_options& options);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  const volume_id& volume() const { return block_.volume; }
  uint64_t epoch() const { return block_.epoch; }

  /// As it stands on disk, in both copies.
  const superblock& block() const { return block_; }
  uint16_t path_index() const { return block_.path_index; }
  /// This path was made by this opening: there is nothing to recover.
  bool made_new() const { return made_new_; }

  /// Where offset 0 of the allocator's arena lies in the file, and how long that arena is.
  uint64_t extents_begin() const { return block_.layout.extents_begin; }
  uint64_t extents_bytes() const { return capacity_bytes() - extents_begin(); }
  uint64_t capacity_bytes() const { return block_.capacity_bytes; }

  /// With O_DIRECT, buffers, offsets and lengths must be multiples of `alignment_bytes()`. Without it the
  /// tier works through the page cache (a tmpfs in tests, say), and `buffered_reason()` says why, for the log
  /// and for status.
  bool direct() const { return buffered_reason_.empty(); }
  const std::string& buffered_reason() const { return buffered_reason_; }
  uint64_t alignment_bytes() const;

 private:
  friend class volume_opener;
  extent_file() = default;

  std::string path_;
  unique_fd fd_;
  superblock block_;
  bool made_new_ = false;
  std::string buffered_reason_;
};

/// A path that is not in service, and why; which of the configured paths it is.
struct left_out_path {
  size_t path = 0;
  error why;
};

struct open_volume {
  std::vector<extent_file> files; ///< in their order; `path_index` says which of the configured paths each is
  std::vector<left_out_path> left_out;
};

} // namespace terrace
