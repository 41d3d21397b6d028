// Opens a disk tier's files, one for each path, and brings back what they hold: index, free space, journals. No actor inside; it blocks
// as long as the devices like, so it is for a thread of its own. Each path is read on a thread beside the others.
//
//   auto disk = disk_opening::open(files, plan);
//   disk->name_spaces(ids);                       // parallel to disk->spaces()
//   while (disk->restore(4096)) ... disk->take_notes() ...
//   disk->place();
//   ... disk->take_notes() ...
//   auto opened = disk->finish();
#pragma once

#include "actors/disk/disk_paths.hpp"
#include "actors/disk/disk_service.hpp"
#include "actors/tier/tier_plan.hpp"
#include "storage/pending_clears.hpp"
#include "storage/recovery.hpp"
#include "storage/volume_spaces.hpp"
#include "tier/residency.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace terrace::actors {

/// What a path's journal begins with, and what was found on it.
struct opened_path {
  journal_position position;
  volume_spaces spaces;
  recovery_counts found;
  uint64_t objects = 0; ///< in the tier
};

/// Open files and all that the tier's actors begin with.
struct opened_disk {
  const volume_id& volume() const { return paths->volume(); }
  /// Bytes that may be written at a time, with `each` for a path. Writes in progress cannot be evicted: they leave most of a small
  /// disk to what may make room for them.
  uint64_t write_bytes_in_progress(uint64_t each_path) const {
    return std::min(each_path * paths->size(), paths->bytes() / 4);
  }

  std::shared_ptr<const disk_paths> paths;
  std::vector<opened_path> each;         ///< by path
  std::vector<left_out_path> left_out;   ///< of the configured paths; the others are `paths`, in their order
  std::shared_ptr<disk_service> service; ///< of the paths; the allocator of a tier on several asks it
  std::unique_ptr<residency> objects;
  std::unique_ptr<allocator> space;
  uint64_t unplaced = 0; ///< objects that the allocator, or a tier with so many spaces, has no place for
  double seconds = 0;    ///< that opening it took
};

/// After an opening that failed with `busy`: a descriptor that polls readable when the file that was locked may be free. Errors:
/// those of `watch_lock`.
result<unique_fd> watch_volume_lock(const std::vector<std::string>& files, const error& busy);

class disk_opening {
 public:
  /// Opens the files and finds out what they hold. What `clears` has for them is forgotten first, durably, and settled there.
  /// Errors: those of `extent_file::open_those_there`, of `pending_clears`, the allocator's.
  static result<disk_opening> open(const extent_files_options& files, const tier_plan& plan,
                                   const pending_clears& clears = pending_clears({}));

  /// Of all paths, one after the other: a space may be there more than once.
  const std::vector<recovered_space>& spaces() const { return spaces_; }
  size_t objects() const;

  /// The ids of `spaces()`; 0: there is no room for that one, and its objects are left out. Before `restore`.
  void name_spaces(std::span<const space_id> ids);

  /// Brings back so many more, of all paths together the oldest first. False: there are no more.
  bool restore(size_t objects);

  /// What the policy should hear of those that `restore` and `place` dealt with since the last call.
  policy_notes take_notes() { return objects_->take_notes(); }

  /// Their extents are taken from the allocator; objects whose place it refuses (it was another one, or had other options,
  /// when they were written) are dropped, and taken out of the index.
  void place();

  /// After `place`; once.
  opened_disk finish();

 private:
  struct path {
    recovered_volume found;
    volume_spaces spaces;
    std::vector<std::pair<uint32_t, space_id>> ids; ///< by the volume's number, ascending
    size_t restored = 0;                            ///< of the objects that were found
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

} // namespace terrace::actors
