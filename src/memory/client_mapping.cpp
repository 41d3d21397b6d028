#include "memory/client_mapping.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

namespace terrace {

namespace {

constexpr auto expected_text =
    ": expected a memfd; create it with memfd_create and seal it with F_SEAL_SHRINK";

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "a directory"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISFIFO(mode) ? "a pipe"
                          : "a device or other special file";
}

} // namespace

result<std::shared_ptr<const client_region>> client_region::open(unique_fd fd, uint64_t bytes, options with) {
  std::shared_ptr<client_region> region(new client_region, deleted_by{with.teardown});
  region->charge_ = std::move(with.charge);
  region->page_ = std::move(with.page);
  region->fd_ = std::move(fd); // from here on the teardown closes it
  struct stat info {};
  if (::fstat(region->fd(), &info) != 0)
    return fail(errc::bad_request, std::string("the region's descriptor cannot be used (") +
                                       std::strerror(errno) + ")" + expected_text);
  if (!S_ISREG(info.st_mode))
    return fail(errc::bad_request, std::string("the region is ") + kind_of(info.st_mode) + expected_text);
  // Only shared memory is accepted. A file on a disk, a network or a FUSE file system could block a copier
  // forever.
  int seals = ::fcntl(region->fd(), F_GET_SEALS);
  if (seals < 0)
    return fail(errc::bad_request,
                std::string("the region is a file that is not shared memory") + expected_text);
  int flags = ::fcntl(region->fd(), F_GETFL);
  int mode = flags & O_ACCMODE;
  if (mode != O_RDWR)
    return fail(errc::bad_request, std::string("the region's descriptor is ") +
                                       (mode == O_WRONLY ? "write-only (O_WRONLY)" : "read-only (O_RDONLY)") +
                                       ": expected one opened for reading and writing");
  if ((flags & O_APPEND) != 0)
    return fail(errc::bad_request,
                "the region's descriptor has O_APPEND, which ignores the offsets of writes: "
                "expected one without");
  auto actual = static_cast<uint64_t>(info.st_size);
  if (bytes == 0 || bytes > actual)
    return fail(errc::bad_request, "a region of " + std::to_string(bytes) +
                                       " bytes was declared, but its memory has " + std::to_string(actual) +
                                       ": expected 1 to that many");

  region->size_ = bytes;
  region->writable_ = (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0;
  struct statfs system {};
  bool ordinary_pages = ::fstatfs(region->fd(), &system) == 0 && system.f_type == TMPFS_MAGIC;
  if ((seals & F_SEAL_SHRINK) == 0) {
    region->why_not_mapped_ = "it does not have F_SEAL_SHRINK";
  } else if (!ordinary_pages) {
    region->why_not_mapped_ = "it uses huge pages";
  } else {
    auto memory = mapping::map(region->fd(), bytes, region->writable_);
    if (!memory)
      return tl::unexpected(memory.error());
    region->memory_ = std::move(*memory);
    if (auto populator = with.populator.lock()) {
      region->ahead_ = std::make_unique<region_ahead>(with.populator, bytes);
      populator->add(region);
    }
  }
  return region;
}

void client_region::copy_begins() const {
  if (!ahead_ || !ahead_->copy_begins())
    return;
  if (auto populator = ahead_->populator())
    populator->add(weak_from_this());
}

std::shared_ptr<const client_region> client_region::of_device(device_memory_ptr memory, uint64_t bytes,
                                                              options with) {
  std::shared_ptr<client_region> region(new client_region);
  region->charge_ = std::move(with.charge);
  region->device_ = std::move(memory);
  region->size_ = bytes;
  region->writable_ = true;
  region->why_not_mapped_ = "it is memory of a device";
  return region;
}

} // namespace terrace
