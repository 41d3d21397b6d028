// Preloaded into a daemon whose disk is larger than the machine's: files on disk become sparse instead of
// allocated, and there is always room. Memory files are still allocated. For measuring restarts, which read
// no object.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>

namespace {

bool is_memory(int fd) {
  struct statfs fs {};
  return ::fstatfs(fd, &fs) != 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC;
}

} // namespace

extern "C" int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  struct stat now {};
  if (mode != 0 || is_memory(fd) || ::fstat(fd, &now) != 0)
    return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, bytes));
  return now.st_size >= offset + bytes ? 0 : ::ftruncate(fd, offset + bytes);
}

extern "C" int fstatvfs(int, struct statvfs* found) noexcept {
  *found = {};
  found->f_bsize = found->f_frsize = 4096;
  found->f_blocks = found->f_bfree = found->f_bavail = uint64_t{1} << 40;
  return 0;
}
