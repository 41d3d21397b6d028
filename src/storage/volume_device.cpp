#include "storage/volume_device.hpp"

#include "index/object_header.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>

namespace terrace {

namespace {

errc code_of(int number) {
  switch (number) {
    case EACCES:
    case EPERM:
    case EROFS: return errc::denied;
    case ENOENT:
    case ENOTDIR: return errc::not_found;
    case EISDIR:
    case EOPNOTSUPP: return errc::unsupported;
    default: return errc::internal;
  }
}

std::string reason(int number) { return std::generic_category().message(number); }

tl::unexpected<error> fail_space(const std::string& path, uint64_t wanted, uint64_t available) {
  return fail(errc::no_space, path + ": " + std::to_string(wanted) +
                                  " more bytes are needed for the volume, " + std::to_string(available) +
                                  " are free on its file system; lower the tier's capacity or free space");
}

uint64_t free_bytes(int fd) {
  struct statvfs fs {};
  return ::fstatvfs(fd, &fs) == 0 ? static_cast<uint64_t>(fs.f_bfree) * fs.f_frsize : 0;
}

} // namespace

tl::unexpected<error> fail_system(const std::string& path, const char* text, int number) {
  return fail(code_of(number), path + ": " + text + ": " + reason(number));
}

result<void> file_device::read(uint64_t file_offset, std::span<std::byte> into) {
  auto done = reader_.read(file_offset, into);
  if (!done)
    return fail(done.error().code, path_ + ": " + done.error().text);
  return {};
}

result<void> file_device::write(uint64_t file_offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(file_offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail_system(path_, "writing to the volume", errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    file_offset += static_cast<uint64_t>(n);
  }
  return {};
}

result<void> file_device::sync() {
  if (::fsync(fd_) != 0)
    return fail_system(path_, "syncing the volume", errno);
  return {};
}

result<uint64_t> file_device::size() {
  struct stat now {};
  if (::fstat(fd_, &now) != 0)
    return fail_system(path_, "examining the volume", errno);
  return static_cast<uint64_t>(now.st_size);
}

result<void> file_device::resize(uint64_t bytes) {
  struct stat before {};
  if (::fstat(fd_, &before) != 0)
    return fail_system(path_, "examining the volume", errno);
  auto present = static_cast<uint64_t>(before.st_blocks) * 512;
  uint64_t wanted = bytes > present ? bytes - present : 0;
  // Free space is asked for first, because a file system may take minutes, or all memory of a tmpfs, to find out.
  if (uint64_t available = free_bytes(fd_); wanted > available)
    return fail_space(path_, wanted, available);
  if (static_cast<uint64_t>(before.st_size) > bytes && ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0)
    return fail_system(path_, "shrinking the volume", errno);
  int rc;
  do
    rc = ::fallocate(fd_, 0, 0, static_cast<off_t>(bytes));
  while (rc != 0 && errno == EINTR);
  if (rc == 0)
    return {};
  int number = errno;
  if (static_cast<uint64_t>(before.st_size) < bytes)
    (void) !::ftruncate(fd_, before.st_size); // the first error is what counts
  if (number == ENOSPC || number == EDQUOT)
    return fail_space(path_, wanted, free_bytes(fd_));
  return fail_system(path_, "allocating the volume (fallocate)", number);
}

std::string try_direct(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (::fcntl(fd, F_SETFL, flags | O_DIRECT) != 0)
    return "the file system does not support O_DIRECT (" + reason(errno) + "); the page cache is used";
  alignas(disk_alignment_bytes) std::array<std::byte, disk_alignment_bytes> probe;
  if (::pread(fd, probe.data(), probe.size(), 0) == static_cast<ssize_t>(probe.size()))
    return {};
  std::string why = "a read of 4 KiB with O_DIRECT failed (" + reason(errno) + "); the page cache is used";
  ::fcntl(fd, F_SETFL, flags);
  return why;
}

result<std::shared_ptr<named_file>> open_for_readers(int fd, const std::string& path) {
  const std::string same = "/proc/self/fd/" + std::to_string(fd); // reaches the file whatever its name is now
  unique_fd opened(::open(same.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!opened)
    return fail_system(path, "opening it once more, for GPUs", errno);
  return std::make_shared<named_file>(std::move(opened), path);
}

result<void> file_reader::read(uint64_t file_offset, std::span<std::byte> into) {
  while (!into.empty()) {
    ssize_t n = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(file_offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fail(
          errc::internal,
          "reading " + std::to_string(into.size()) + " bytes at " + std::to_string(file_offset) +
              " of the volume: " + (n == 0 ? "the file ends there" : std::generic_category().message(errno)));
    into = into.subspan(static_cast<size_t>(n));
    file_offset += static_cast<uint64_t>(n);
  }
  return {};
}

} // namespace terrace
