// Opens a disk tier's files, one per path, and recovers their contents: index, free space, journals. Contains
// no actor; blocks as long as the devices take, so it needs its own thread. The paths are read in parallel,
// one thread each.
//
//   auto disk = disk_opening::open(files, plan);
//   disk->name_spaces(ids);                       // parallel to disk->spaces()
//   while (disk->restore(4096)) ... disk->take_notes() ...
//   disk->place();
//   ... disk->take_notes() ...
//   auto opened = disk->finish();
#pragma once

#include "metrics/disk_probe.hpp"
#include "metrics/tier_probe.hpp"
#include "storage/disk/disk_paths.hpp"
#include "storage/disk/disk_service.hpp"
#include "storage/pending_clears.hpp"
#include "storage/recovery.hpp"
#include "storage/volume_spaces.hpp"
#include "tier/objects/residency.hpp"
#include "tier/tier_config.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace {

/// The initial state of a path's journal, and what was found on the path.
struct opened_path {
  journal_position position;
  volume_spaces spaces;
  recovery_counts found;
  uint64_t objects = 0; ///< objects in the tier
};

/// Open files and the initial state of the tier's actors.
struct opened_disk {
  /// The bytes that may be written at a time, with `each_path` per path. Writes in progress cannot be
  /// evicted, so they may take only a part of a small disk.
  uint64_t write_bytes_in_progress(uint64_t each_path) const {
    return std::min(each_path * paths->size(), paths->bytes() / 4);
  }

  std::shared_ptr<const disk_paths> paths;
  std::vector<opened_path> each; ///< by path
  /// Configured paths that were left out; the others are `paths`, in order.
  std::vector<left_out_path> left_out;
  std::shared_ptr<disk_service>
      service; ///< the service state of the paths, which the allocator of several paths reads
  std::unique_ptr<residency> objects;
  std::unique_ptr<allocator> space;
  uint64_t unplaced = 0; ///< objects that the allocator, or a tier with this many spaces, has no place for
  double seconds = 0;    ///< time taken to open it
};

/// Call after an opening failed with `busy`. Returns a descriptor that becomes readable when the locked file
/// may be free. Errors: those of `watch_lock`.
result<unique_fd> watch_volume_lock(const std::vector<std::string>& files, const error& busy);

class disk_opening {
 public:
  /// Opens the files and recovers their contents. Pending clears in `clears` are applied first, durably, and
  /// removed. Errors: those of `extent_file::open_those_there`, of `pending_clears` and of the allocator.
  static result<disk_opening> open(const extent_files_options& files, const tier_config& plan,
                                   const pending_clears& clears = pending_clears({}));

  /// The spaces of all paths in sequence: a space may appear more than once.
  const std::vector<recovered_space>& spaces() const { return spaces_; }
  size_t objects() const;

  /// Sets the ids of `spaces()`; with 0 there is no room for that space, and its objects are dropped. Call
  /// before `restore`.
  void name_spaces(std::span<const space_id> ids);

  /// Restores this many more objects, the oldest of all paths first. Returns false if there are no more.
  bool restore(size_t objects);

  /// Notes for the policy on objects processed by `restore` and `place` since the last call.
  policy_notes take_notes() { return objects_->take_notes(); }

  /// Allocates the objects' extents. Objects whose place the allocator refuses (it had another type or other
  /// options when they were written) are dropped and removed from the index.
  void place();

  /// Call once, after `place`.
  opened_disk finish();

 private:
  struct path {
    recovered_volume found;
    volume_spaces spaces;
    std::vector<std::pair<uint32_t, space_id>> ids; ///< sorted by the volume's number
    size_t restored = 0;                            ///< number of objects restored
    uint64_t placed = 0;

    bool done() const { return restored == found.objects.size(); }
    space_id named(uint32_t number) const;
  };

  void recover_paths();
  path* oldest();

  std::shared_ptr<const disk_paths> files_;
  std::vector<left_out_path> left_out_;
  std::shared_ptr<disk_service> service_;
  std::unique_ptr<allocator> space_;
  std::unique_ptr<residency> objects_;
  std::vector<path> paths_;
  std::vector<recovered_space> spaces_;
  uint64_t unplaced_ = 0;
};

// Log texts and metrics for an opened disk tier.

/// The number of unusable blocks and records in the index of one path.
inline uint64_t damaged_in(const opened_path& path) {
  return path.found.damaged_blocks + path.found.missing_blocks + path.found.damaged_records;
}

/// Describes the tier's size, its place, and what was found in it.
std::string describe_opened(const opened_disk& disk);

/// Lists the paths that are left out; empty if none.
std::string describe_left_out(const opened_disk& disk);

/// Describes what is lost of its index; empty if nothing.
std::string describe_losses(const opened_disk& disk);

/// Lines for the log when the tier joins: that it does, and what is wrong. `tier` is its name.
struct joining_lines {
  std::string joined;
  std::vector<std::string> warnings;
};
joining_lines describe_joining(const std::string& tier, const opened_disk& disk);

/// Counts what was found and what is missing. `probes` is parallel to the configured paths.
void count_opened(const opened_disk& disk, std::span<const metrics::path_probes> probes,
                  metrics::tier_probe& tier);

} // namespace terrace
