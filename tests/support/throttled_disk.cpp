// A file system over a folder whose files are read at most at a given speed: `throttled_disk FOLDER
// MOUNTPOINT BYTES_PER_S`.
//
// Reads take turns, as at a device with one head; everything else goes straight to the folder. It prints
// "mounted" and serves until it is unmounted or killed. For tests and benchmarks: needs /dev/fuse and the
// right to mount.
#define FUSE_USE_VERSION 31
#include <fuse.h>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

using clock_type = std::chrono::steady_clock;

/// The time at which the device has read everything requested so far.
class read_head {
 public:
  explicit read_head(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  clock_type::time_point done_with(size_t bytes) {
    std::lock_guard guard(lock_);
    auto begin = std::max(free_, clock_type::now());
    free_ = begin + std::chrono::duration_cast<clock_type::duration>(
                        std::chrono::duration<double>(static_cast<double>(bytes) / bytes_per_s_));
    return free_;
  }

 private:
  double bytes_per_s_;
  std::mutex lock_;
  clock_type::time_point free_{};
};

struct device {
  std::string folder;
  read_head head;
};

device& own() { return *static_cast<device*>(fuse_get_context()->private_data); }
std::string real(const char* path) { return own().folder + path; }
int or_errno(int rc) { return rc == -1 ? -errno : rc; }
int fd_of(const fuse_file_info* file) { return static_cast<int>(file->fh); }

void* begin(fuse_conn_info*, fuse_config* config) {
  config->kernel_cache = 0;
  config->direct_io = 1;
  config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
  config->hard_remove = 1;
  std::puts("mounted");
  std::fflush(stdout);
  return fuse_get_context()->private_data;
}

int get_attributes(const char* path, struct stat* into, fuse_file_info* file) {
  return or_errno(file ? ::fstat(fd_of(file), into) : ::lstat(real(path).c_str(), into));
}
int make_folder(const char* path, mode_t mode) { return or_errno(::mkdir(real(path).c_str(), mode)); }
int remove_file(const char* path) { return or_errno(::unlink(real(path).c_str())); }
int remove_folder(const char* path) { return or_errno(::rmdir(real(path).c_str())); }
int rename_file(const char* from, const char* to, unsigned flags) {
  return or_errno(::renameat2(AT_FDCWD, real(from).c_str(), AT_FDCWD, real(to).c_str(), flags));
}
int change_mode(const char* path, mode_t mode, fuse_file_info*) {
  return or_errno(::chmod(real(path).c_str(), mode));
}
int truncate_file(const char* path, off_t bytes, fuse_file_info* file) {
  return or_errno(file ? ::ftruncate(fd_of(file), bytes) : ::truncate(real(path).c_str(), bytes));
}
int open_with(const char* path, int flags, mode_t mode, fuse_file_info* file) {
  // O_DIRECT is dropped, because buffers come through this process and need not be aligned.
  int fd = ::open(real(path).c_str(), (flags & ~O_DIRECT) | O_CLOEXEC, mode);
  if (fd == -1)
    return -errno;
  file->fh = static_cast<uint64_t>(fd);
  file->direct_io = 1;
  return 0;
}
int open_file(const char* path, fuse_file_info* file) { return open_with(path, file->flags, 0, file); }
int create_file(const char* path, mode_t mode, fuse_file_info* file) {
  return open_with(path, file->flags | O_CREAT, mode, file);
}
int read_file(const char*, char* into, size_t bytes, off_t at, fuse_file_info* file) {
  // The device is slow, which is the purpose of this program.
  std::this_thread::sleep_until(own().head.done_with(bytes));
  return or_errno(static_cast<int>(::pread(fd_of(file), into, bytes, at)));
}
int write_file(const char*, const char* from, size_t bytes, off_t at, fuse_file_info* file) {
  return or_errno(static_cast<int>(::pwrite(fd_of(file), from, bytes, at)));
}
int allocate(const char*, int mode, off_t at, off_t bytes, fuse_file_info* file) {
  return or_errno(::fallocate(fd_of(file), mode, at, bytes));
}
int synchronize(const char*, int, fuse_file_info* file) { return or_errno(::fdatasync(fd_of(file))); }
int close_file(const char*, fuse_file_info* file) { return or_errno(::close(fd_of(file))); }
int statistics(const char* path, struct statvfs* into) {
  return or_errno(::statvfs(real(path).c_str(), into));
}
int list(const char* path, void* into, fuse_fill_dir_t add, off_t, fuse_file_info*, fuse_readdir_flags) {
  DIR* folder = ::opendir(real(path).c_str());
  if (!folder)
    return -errno;
  while (const dirent* entry = ::readdir(folder))
    add(into, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
  ::closedir(folder);
  return 0;
}

} // namespace

int main(int count, char** words) {
  double bytes_per_s = count == 4 ? std::atof(words[3]) : 0;
  if (bytes_per_s <= 0) {
    std::fputs("usage: throttled_disk FOLDER MOUNTPOINT BYTES_PER_S\n", stderr);
    return 2;
  }
  ::umask(0);
  device made{words[1], read_head(bytes_per_s)};
  fuse_operations calls{};
  calls.init = begin;
  calls.getattr = get_attributes;
  calls.mkdir = make_folder;
  calls.unlink = remove_file;
  calls.rmdir = remove_folder;
  calls.rename = rename_file;
  calls.chmod = change_mode;
  calls.truncate = truncate_file;
  calls.open = open_file;
  calls.create = create_file;
  calls.read = read_file;
  calls.write = write_file;
  calls.fallocate = allocate;
  calls.fsync = synchronize;
  calls.release = close_file;
  calls.statfs = statistics;
  calls.readdir = list;
  // Many threads, because each read that waits for its turn has one.
  std::string arguments[] = {words[0], "-f", "-o", "fsname=throttled,max_idle_threads=32"};
  char* argv[] = {
      arguments[0].data(), arguments[1].data(), arguments[2].data(), arguments[3].data(), words[2], nullptr};
  return ::fuse_main(5, argv, &calls, &made);
}
