// The devices on which the files of the disk tiers are, and who shares them.
#pragma once

#include "transfer/device_share.hpp"

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace terrace {

/// One per daemon. Safe on any thread.
class shared_devices {
 public:
  /// The share of an open file of this trust group; null if its device is not known.
  std::shared_ptr<device_share> join(int file, uint64_t group, const io_limits& limits);
  std::shared_ptr<device_share> join_device(dev_t device, uint64_t group, const io_limits& limits);

 private:
  std::mutex lock_;
  std::map<dev_t, std::weak_ptr<shared_device>> devices_;
};

/// The disk to which a partition belongs; `device` itself if it is none. What logical volumes and arrays consist of is
/// not considered. `block_devices`: the kernel's folder of block devices by number.
dev_t whole_device(dev_t device, const std::string& block_devices = "/sys/dev/block");

} // namespace terrace
