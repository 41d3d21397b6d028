#include "storage/offline_volume.hpp"

#include "storage/file_lock.hpp"
#include "storage/superblock_copies.hpp"
#include "storage/volume_layout.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace terrace {

result<offline_volume> offline_volume::open(const std::string& path, volume_access access) {
  bool writes = access == volume_access::write;
  // Opening does not wait for a writer if the path is a FIFO.
  unique_fd fd(::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd)
    return fail_system(path, "opening the volume", errno);
  struct stat is {};
  if (::fstat(fd.get(), &is) != 0)
    return fail_system(path, "examining the volume", errno);
  if (!S_ISREG(is.st_mode))
    return fail(errc::unsupported, path + ": expected a regular file");
  if (auto locked = lock_file(path, fd.get(), writes ? lock_kind::exclusive : lock_kind::shared); !locked)
    return fail(locked.error().code,
                locked.error().text + "; stop it first, because the file must not be in use");
  if (is.st_size % static_cast<off_t>(disk_alignment_bytes) == 0)
    (void) try_direct(fd.get()); // if this fails, the page cache is used
  offline_volume volume;
  volume.device_ = std::make_unique<file_device>(path, fd.get());
  volume.fd_ = std::move(fd);
  return volume;
}

result<superblock> read_volume(volume_device& from) {
  auto copies = read_superblocks(from);
  if (!copies)
    return tl::unexpected(copies.error());
  if (!copies->newest)
    return copies->newest;
  const superblock& block = *copies->newest;
  if (!fits(block.layout, block.capacity_bytes))
    return fail(errc::internal, "the superblock is inconsistent: expected a layout that fits into " +
                                    std::to_string(block.capacity_bytes) + " bytes was expected");
  return block;
}

uint64_t arena_bytes(const superblock& block, uint64_t file_bytes) {
  uint64_t end = std::min(block.capacity_bytes, file_bytes) / disk_alignment_bytes * disk_alignment_bytes;
  return end - std::min(end, block.layout.extents_begin);
}

} // namespace terrace
