// The preallocated files that hold a disk tier's extents, one per path.
//
//   auto file = extent_file::open({.path = "/var/lib/terrace/disk0", .capacity_bytes = 64ULL << 30, .boot =
//   boot});
//   ... read and write at file->extents_begin() + extent.offset through file->fd() ...
//
// `open` makes file system calls that block for as long as the device takes (allocating, locking, syncing),
// so it is called from a detached actor, never on a worker. Everything else only reads members.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/unique_fd.hpp"
#include "storage/path_set.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_layout.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace terrace {

struct extent_file_options {
  std::string path;
  /// Size of the whole file, fully allocated; rounded down to 4 KiB; at least 1 MiB.
  uint64_t capacity_bytes = 0;
  bool direct = true;       ///< try O_DIRECT
  bool for_readers = false; ///< open the file once more, for other processes
  /// Replaces anything else with an empty volume: bytes that are not a volume, a volume of another version or
  /// owner, or a damaged one. Otherwise these are refused and left unchanged.
  bool wipe_foreign = false;
  volume_owner owner;
  boot_id boot; ///< boot of this daemon, as information for later inspection
};

/// A volume on several paths: one file per path.
struct extent_files_options {
  std::vector<std::string> paths; ///< in order; at least one, at most `superblock::paths_max`
  uint64_t capacity_bytes = 0;    ///< size of each file, as above
  bool direct = true;
  mismatch_rule on_mismatch = mismatch_rule::refuse;
  /// Expected size of extents: a new index has room for as many.
  uint64_t object_bytes = object_bytes_expected;
  volume_owner owner;
  boot_id boot;
  bool for_readers = false;            ///< open each file once more, for other processes
  std::vector<pending_clear> clears{}; ///< clears that the volume does not know yet (pending_clears.hpp)
};

struct open_volume;

/// An open volume, or one path of it. Holds an exclusive lock, so that two daemons never share a file; the
/// descriptor and the lock end with the object. Opening raises the epoch, so that the generations of this
/// opening are new. The contents are determined by `recover` (recovery.hpp) and kept up to date by
/// `index_journal`. A file shrunk so far that its metadata would take more than a quarter starts over empty.
class extent_file {
 public:
  /// Errors: `bad_request` (options), `busy` (another process has the volume open), `no_space` (with the
  /// path, requested and available bytes), `denied` (permissions; a file that is not a volume; a volume of
  /// another owner), `unsupported` (not a regular file; a file system without fallocate; a volume of another
  /// version), `internal` (damaged superblock, I/O errors). On failure an existing file keeps its former
  /// size, and a new file is removed.
  static result<extent_file> open(const extent_file_options& options);

  /// Opens all paths of a volume, in order. All are locked and examined before any is changed; path_set.hpp
  /// describes the possible results. They share one volume id and one epoch, and each applies what any of
  /// them was told to forget. Errors: as `open`, and `denied` for files that do not belong together; then all
  /// files are left as by `open`.
  static result<std::vector<extent_file>> open_all(const extent_files_options& options);

  /// Opens those paths of a volume that can be opened, if at least one of them contains it. The others are
  /// left out and unchanged, and the superblocks of the opened ones record that. They rejoin at a later
  /// opening, which applies to them what was forgotten in the meantime. Errors: `busy`, because another
  /// process will end; `denied` if the paths have another order or number, or are copies; and as above if no
  /// path contains a volume yet.
  static result<open_volume> open_those_there(const extent_files_options& options);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  const volume_id& volume() const { return block_.volume; }
  uint64_t epoch() const { return block_.epoch; }

  /// The superblock as on disk, in both copies.
  const superblock& block() const { return block_; }
  uint16_t path_index() const { return block_.path_index; }
  /// True if this opening created the path: there is nothing to recover.
  bool made_new() const { return made_new_; }

  /// What was wrong with one copy of the superblock before this opening rewrote both; empty: nothing.
  const std::string& damaged_superblock() const { return damaged_superblock_; }

  /// The file offset of the allocator's arena, and the size of the arena.
  uint64_t extents_begin() const { return block_.layout.extents_begin; }
  uint64_t extents_bytes() const { return capacity_bytes() - extents_begin(); }
  uint64_t capacity_bytes() const { return block_.capacity_bytes; }

  /// With O_DIRECT, buffers, offsets and lengths must be multiples of `alignment_bytes()`. Without it the
  /// tier uses the page cache (on tmpfs in tests, for example), and `buffered_reason()` gives the reason, for
  /// log and status.
  bool direct() const { return buffered_reason_.empty(); }
  const std::string& buffered_reason() const { return buffered_reason_; }
  uint64_t alignment_bytes() const;

  /// The same file, opened once more with O_DIRECT, for reading only and without the lock, for another
  /// process. Null if nobody asked for it, or if `readers_refusal()` says why not, which includes the path.
  const std::shared_ptr<named_file>& for_readers() const { return for_readers_; }
  const std::string& readers_refusal() const { return readers_refusal_; }

 private:
  friend class volume_opener;
  extent_file() = default;
  void open_once_more();

  std::string path_;
  unique_fd fd_;
  superblock block_;
  bool made_new_ = false;
  std::string buffered_reason_;
  std::shared_ptr<named_file> for_readers_;
  std::string readers_refusal_;
  std::string damaged_superblock_;
};

/// A configured path that is not in service, with the reason.
struct left_out_path {
  size_t path = 0;
  error why;
};

struct open_volume {
  std::vector<extent_file> files; ///< in order; `path_index` is the index among the configured paths
  std::vector<left_out_path> left_out;
};

} // namespace terrace
