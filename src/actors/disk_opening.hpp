// Opens a disk tier's file and brings back what it holds: index, free space, journal. No actor inside; it blocks as long as
// the device likes, so it is for a thread of its own.
//
//   auto disk = disk_opening::open(file, plan);
//   disk->name_spaces(ids);                       // parallel to disk->spaces()
//   while (disk->restore(4096)) ... disk->take_notes() ...
//   disk->place();
//   ... disk->take_notes() ...
//   auto opened = disk->finish();
#pragma once

#include "actors/tier_plan.hpp"
#include "actors/tier_state.hpp"
#include "storage/extent_file.hpp"
#include "storage/recovery.hpp"
#include "storage/store_spaces.hpp"

#include <memory>

namespace terrace::actors {

/// An open file and all that the tier's actors begin with.
struct opened_disk {
  std::shared_ptr<const extent_file> file;
  std::unique_ptr<tier_state> objects;
  std::unique_ptr<allocator> space;
  journal_position position;
  store_spaces spaces;
  recovery_counts found;
  uint64_t unplaced = 0; ///< objects that the allocator, or a tier with so many spaces, has no place for
};

class disk_opening {
 public:
  /// Opens the file and finds out what it holds. Errors: those of `extent_file::open`, the allocator's.
  static result<disk_opening> open(const extent_file_options& file, const tier_plan& plan);

  const std::vector<recovered_space>& spaces() const { return found_.spaces; }
  size_t objects() const { return found_.objects.size(); }

  /// The ids of `spaces()`; 0: there is no room for that one, and its objects are left out. Before `restore`.
  void name_spaces(std::span<const space_id> ids);

  /// Brings back so many more. False: there are no more.
  bool restore(size_t objects);

  /// What the policy should hear of those that `restore` and `place` dealt with since the last call.
  policy_notes take_notes() { return objects_->take_notes(); }

  /// Their extents are taken from the allocator; objects whose place it refuses (it was another one, or had other options,
  /// when they were written) are dropped, and taken out of the index.
  void place();

  /// After `place`; once.
  opened_disk finish();

 private:
  std::shared_ptr<const extent_file> file_;
  std::unique_ptr<allocator> space_;
  std::unique_ptr<tier_state> objects_;
  recovered_store found_;
  store_spaces store_spaces_;
  std::vector<std::pair<uint32_t, space_id>> ids_; ///< by the store's number, ascending
  size_t restored_ = 0;
  uint64_t unplaced_ = 0;
};

} // namespace terrace::actors
