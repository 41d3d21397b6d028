// The devices that hold the files of the disk tiers, and the trust groups that share them.
#pragma once

#include "transfer/device_share.hpp"

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace terrace {

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

} // namespace terrace
