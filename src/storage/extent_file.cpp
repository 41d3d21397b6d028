#include "storage/extent_file.hpp"

#include "storage/index_record.hpp"
#include "storage/object_header.hpp"
#include "storage/store_layout.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

namespace terrace {

namespace {

constexpr uint64_t smallest_capacity_bytes = 1ULL << 20;

std::string reason(int number) { return std::generic_category().message(number); }

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

tl::unexpected<error> fail_system(const std::string& path, const char* what, int number) {
  return fail(code_of(number), path + ": " + what + ": " + reason(number));
}

tl::unexpected<error> fail_space(const std::string& path, uint64_t wanted, uint64_t available) {
  return fail(errc::no_space, path + ": " + std::to_string(wanted) +
                                  " bytes more are wanted for the store, " + std::to_string(available) +
                                  " are free on its file system; lower the tier's capacity or make room");
}

uint64_t free_bytes(int fd) {
  struct statvfs fs {};
  return ::fstatvfs(fd, &fs) == 0 ? static_cast<uint64_t>(fs.f_bfree) * fs.f_frsize : 0;
}

// Puts a file back as it was found unless `keep` was called.
class size_guard {
 public:
  size_guard(const std::string& path, int fd, bool created, off_t size)
      : path_(path), fd_(fd), created_(created), size_(size) {}
  size_guard(const size_guard&) = delete;
  size_guard& operator=(const size_guard&) = delete;
  ~size_guard() {
    if (kept_)
      return;
    if (created_)
      ::unlink(path_.c_str());
    else if (::ftruncate(fd_, size_) != 0)
      return; // the caller reports the first error already
  }
  void keep() { kept_ = true; }

 private:
  const std::string& path_;
  int fd_;
  bool created_;
  off_t size_;
  bool kept_ = false;
};

store_owner owner_on_disk(store_owner owner) {
  owner.group.resize(std::min(owner.group.size(), store_owner::group_bytes_max));
  return owner;
}

std::string describe(const store_owner& owner) {
  return "group '" + owner.group + "' of machine " + to_hex(store_id{owner.machine});
}

// What stands at the begin of the file; nothing for a new or unfinished one.
result<std::optional<superblock>> read_superblock(const extent_file_options& options, int fd, uint64_t size) {
  if (size == 0)
    return std::nullopt;
  std::array<std::byte, 2 * superblock_bytes> bytes{};
  ssize_t n = ::pread(fd, bytes.data(), bytes.size(), 0);
  if (n < 0)
    return fail_system(options.path, "reading the superblock", errno);
  auto block = newest_superblock(bytes);
  if (!block && block.error().code == errc::not_found)
    return std::nullopt;
  if (!block)
    return fail(block.error().code, options.path + ": " + block.error().text);
  if (!(block->owner == owner_on_disk(options.owner)))
    return fail(errc::denied, options.path + ": this store belongs to " + describe(block->owner) + "; " +
                                  describe(options.owner) +
                                  " was expected. Choose another path, or wipe it (disk.on_mismatch = "
                                  "\"wipe\") if nothing in it is needed");
  if (block->path_count != 1)
    return fail(errc::denied, options.path + ": this is path " + std::to_string(block->path_index) + " of " +
                                  std::to_string(block->path_count) +
                                  " of a striped store; a store of one path was expected");
  return *block;
}

// Both copies, one after the other: a crash leaves one of them whole, and damage to one does not bring back what the
// other says is forgotten.
result<void> write_superblock(const std::string& path, int fd, superblock& block) {
  std::array<std::byte, superblock_bytes> bytes;
  for (int copy = 0; copy < 2; ++copy) {
    ++block.sequence;
    encode(block, bytes);
    if (::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(superblock_offset(block.sequence))) !=
        static_cast<ssize_t>(bytes.size()))
      return fail_system(path, "writing the superblock", errno);
    if (::fsync(fd) != 0)
      return fail_system(path, "making the superblock durable", errno);
  }
  return {};
}

// Every byte is allocated before the first object, so that no write can run out of space later.
result<void> allocate(const std::string& path, int fd, const struct stat& before, uint64_t capacity) {
  auto present = static_cast<uint64_t>(before.st_blocks) * 512;
  uint64_t wanted = capacity > present ? capacity - present : 0;
  // Asked first because a file system may take minutes, or all memory of a tmpfs, to find out.
  if (uint64_t available = free_bytes(fd); wanted > available)
    return fail_space(path, wanted, available);
  if (static_cast<uint64_t>(before.st_size) > capacity && ::ftruncate(fd, static_cast<off_t>(capacity)) != 0)
    return fail_system(path, "shrinking the store", errno);
  int rc;
  do
    rc = ::fallocate(fd, 0, 0, static_cast<off_t>(capacity));
  while (rc != 0 && errno == EINTR);
  if (rc == 0)
    return {};
  if (errno == ENOSPC || errno == EDQUOT)
    return fail_space(path, wanted, free_bytes(fd));
  return fail_system(path, "allocating the store (fallocate)", errno);
}

// Empty when reads past the page cache work, otherwise why they do not.
std::string try_direct(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (::fcntl(fd, F_SETFL, flags | O_DIRECT) != 0)
    return "the file system refuses O_DIRECT (" + reason(errno) + "); the page cache is used";
  alignas(disk_alignment_bytes) std::array<std::byte, disk_alignment_bytes> probe;
  if (::pread(fd, probe.data(), probe.size(), 0) == static_cast<ssize_t>(probe.size()))
    return {};
  std::string why = "a read of 4 KiB with O_DIRECT failed (" + reason(errno) + "); the page cache is used";
  ::fcntl(fd, F_SETFL, flags);
  return why;
}

result<unique_fd> open_locked(const std::string& path, bool& created) {
  created = true;
  unique_fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd && errno == EEXIST) {
    created = false;
    fd.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  if (!fd)
    return fail_system(path, "opening the store", errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
    return fd;
  if (errno == EWOULDBLOCK)
    return fail(errc::busy,
                path + ": another process has this store open; give each daemon a path of its own");
  return fail_system(path, "locking the store", errno);
}

} // namespace

result<extent_file> extent_file::open(const extent_file_options& options) {
  uint64_t capacity = options.capacity_bytes / disk_alignment_bytes * disk_alignment_bytes;
  if (options.path.empty() || capacity < smallest_capacity_bytes || capacity > INT64_MAX)
    return fail(errc::bad_request, "a store needs a path and a capacity of 1 MiB or more; got '" +
                                       options.path + "' and " + std::to_string(options.capacity_bytes) +
                                       " bytes");
  bool created = false;
  auto fd = open_locked(options.path, created);
  if (!fd)
    return tl::unexpected(fd.error());
  struct stat before {};
  if (::fstat(fd->get(), &before) != 0)
    return fail_system(options.path, "looking at the store", errno);
  if (!S_ISREG(before.st_mode))
    return fail(errc::unsupported, options.path + ": a store is a regular file; this is something else");
  size_guard guard(options.path, fd->get(), created, before.st_size);

  auto found = read_superblock(options, fd->get(), static_cast<uint64_t>(before.st_size));
  if (!found && !options.wipe_foreign) {
    guard.keep(); // nothing was changed
    return tl::unexpected(found.error());
  }
  if (auto done = allocate(options.path, fd->get(), before, capacity); !done)
    return tl::unexpected(done.error());
  bool goes_on = found && *found && fits((*found)->layout, capacity) && (*found)->epoch < epoch_max;
  superblock block;
  if (goes_on) {
    block = std::move(**found);
  } else {
    block.store = random_store_id();
    block.owner = owner_on_disk(options.owner);
    block.layout = layout_for(capacity);
  }
  block.boot = options.boot;
  block.capacity_bytes = capacity;
  ++block.epoch;
  if (auto done = write_superblock(options.path, fd->get(), block); !done)
    return tl::unexpected(done.error());
  guard.keep();

  extent_file file;
  file.path_ = options.path;
  file.fd_ = std::move(*fd);
  file.block_ = std::move(block);
  file.made_new_ = !goes_on;
  file.buffered_reason_ =
      options.direct ? try_direct(file.fd()) : "O_DIRECT is turned off in the configuration";
  return file;
}

uint64_t extent_file::alignment_bytes() const { return disk_alignment_bytes; }

} // namespace terrace
