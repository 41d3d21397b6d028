// The files of a disk tier, one per path, and their places in the tier's arena.
#pragma once

#include "memory/striped_allocator.hpp"
#include "storage/extent_file.hpp"
#include "transfer/device_share.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <vector>

namespace terrace {

// The devices that hold the files of the disk tiers, and the trust groups that share them.

/// The daemon has one. Safe on any thread.
class shared_devices {
 public:
  /// Returns the share of an open file of this trust group; null if its device is not known.
  std::shared_ptr<device_share> join(int file, uint64_t group, const io_limits& limits);
  std::shared_ptr<device_share> join_device(dev_t device, uint64_t group, const io_limits& limits);

 private:
  std::mutex lock_;
  std::map<dev_t, std::weak_ptr<shared_device>> devices_;
};

/// Returns the disk to which a partition belongs; `device` itself if it is not a partition. The devices below logical
/// volumes and arrays are not considered. `block_devices` is the kernel's folder of block devices by number.
dev_t whole_device(dev_t device, const std::string& block_devices = "/sys/dev/block");

/// The arenas of the files follow each other in the tier's arena. Each object is in one file. Immutable; safe
/// on any thread.
class disk_paths {
 public:
  /// `files` are all files of one volume, in order; at least one.
  explicit disk_paths(std::vector<extent_file> files) : map_(bytes_of(files)) {
    for (extent_file& file : files)
      files_.push_back(std::make_shared<const extent_file>(std::move(file)));
  }

  size_t size() const { return files_.size(); }
  const std::shared_ptr<const extent_file>& file(size_t path) const { return files_[path]; }
  const volume_id& volume() const { return files_.front()->volume(); }
  const path_map& map() const { return map_; }
  uint64_t bytes() const { return map_.end(size() - 1); } ///< size of the tier's arena

  struct place {
    size_t path = 0;
    uint64_t file_offset = 0;
  };
  /// Returns the place of an offset in the tier's arena.
  place locate(uint64_t offset) const {
    size_t path = map_.path_of(offset);
    return {path, files_[path]->extents_begin() + (offset - map_.begin(path))};
  }

 private:
  static std::vector<uint64_t> bytes_of(const std::vector<extent_file>& files) {
    std::vector<uint64_t> bytes;
    for (const extent_file& file : files)
      bytes.push_back(file.extents_bytes());
    return bytes;
  }

  path_map map_;
  std::vector<std::shared_ptr<const extent_file>> files_;
};

} // namespace terrace
