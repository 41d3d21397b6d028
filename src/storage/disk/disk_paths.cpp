#include "storage/disk/disk_paths.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

namespace terrace {

dev_t whole_device(dev_t device, const std::string& block_devices) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::path place = fs::canonical(fs::path(block_devices) /
                                     (std::to_string(major(device)) + ":" + std::to_string(minor(device))),
                                 failed);
  if (failed || !fs::exists(place / "partition", failed))
    return device;
  std::ifstream number(place.parent_path() / "dev");
  unsigned whole_major = 0;
  unsigned whole_minor = 0;
  char colon = 0;
  if (!(number >> whole_major >> colon >> whole_minor) || colon != ':')
    return device;
  return makedev(whole_major, whole_minor);
}

std::shared_ptr<device_share> shared_devices::join(int file, uint64_t group, const io_limits& limits) {
  struct stat seen {};
  if (::fstat(file, &seen) != 0)
    return nullptr;
  return join_device(whole_device(seen.st_dev), group, limits);
}

std::shared_ptr<device_share> shared_devices::join_device(dev_t device, uint64_t group,
                                                          const io_limits& limits) {
  std::shared_ptr<shared_device> found;
  {
    std::lock_guard guard(lock_);
    std::erase_if(devices_, [](const auto& each) { return each.second.expired(); });
    auto& known = devices_[device];
    found = known.lock();
    if (!found)
      known = found = std::make_shared<shared_device>();
  }
  return std::make_shared<device_share>(std::move(found), group, limits);
}

} // namespace terrace
