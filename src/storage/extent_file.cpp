#include "storage/extent_file.hpp"

#include "storage/file_lock.hpp"
#include "storage/index_record.hpp"
#include "storage/object_header.hpp"
#include "storage/store_layout.hpp"
#include "storage/superblock_copies.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace terrace {

namespace {

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
result<std::optional<superblock>> read_superblock(const extent_file_options& options, file_device& device) {
  auto copies = read_superblocks(device);
  if (!copies)
    return tl::unexpected(copies.error());
  const auto& block = copies->newest;
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

result<unique_fd> open_locked(const std::string& path, bool& created) {
  created = true;
  unique_fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd && errno == EEXIST) {
    created = false;
    fd.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  if (!fd)
    return fail_system(path, "opening the store", errno);
  if (auto locked = lock_file(path, fd.get(), lock_kind::exclusive); !locked)
    return fail(locked.error().code, locked.error().text + "; give each daemon a path of its own");
  return fd;
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

  file_device device(options.path, fd->get());
  auto found = read_superblock(options, device);
  if (!found && !options.wipe_foreign) {
    guard.keep(); // nothing was changed
    return tl::unexpected(found.error());
  }
  // Every byte is allocated before the first object, so that no write can run out of space later.
  if (auto done = device.resize(capacity); !done)
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
  if (auto done = write_superblocks(device, block); !done)
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
