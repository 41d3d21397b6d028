#include "storage/path_opening.hpp"

#include "storage/aligned_buffer.hpp"
#include "storage/file_lock.hpp"
#include "storage/superblock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace terrace {

namespace {

constexpr uint64_t erased_together = 1ULL << 20; ///< bytes

std::string describe(const volume_owner& owner) {
  return "group '" + owner.group + "' of machine " + to_hex(volume_id{owner.machine});
}

result<unique_fd> open_locked(const std::string& path, bool& made) {
  made = true;
  unique_fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd && errno == EEXIST) {
    made = false;
    fd.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  if (!fd && errno == ENOENT)
    return fail(errc::not_found,
                path + ": its directory does not exist; mount the device, or make the directory: "
                       "the daemon does not make it");
  if (!fd)
    return fail_system(path, "opening the volume", errno);
  if (auto locked = lock_file(path, fd.get(), lock_kind::exclusive); !locked)
    return fail(locked.error().code, locked.error().text + "; use a different path per daemon");
  return fd;
}

} // namespace

volume_owner owner_on_disk(volume_owner owner) {
  owner.group.resize(std::min(owner.group.size(), volume_owner::group_bytes_max));
  return owner;
}

path_opening::path_opening(std::string path, unique_fd fd, bool made, off_t size)
    : path_(std::move(path)), fd_(std::move(fd)), device_(path_, fd_.get()), made_(made), size_(size) {}

path_opening::~path_opening() {
  if (kept_)
    return;
  if (made_)
    ::unlink(path_.c_str());
  else if (::ftruncate(fd_.get(), size_) != 0)
    return; // the caller already reports the first error
}

result<std::unique_ptr<path_opening>> path_opening::begin(const std::string& path) {
  bool made = false;
  auto fd = open_locked(path, made);
  if (!fd)
    return tl::unexpected(fd.error());
  struct stat before {};
  if (::fstat(fd->get(), &before) != 0)
    return fail_system(path, "examining the volume", errno);
  if (!S_ISREG(before.st_mode))
    return fail(errc::unsupported, path + ": expected a regular file");
  return std::unique_ptr<path_opening>(new path_opening(path, std::move(*fd), made, before.st_size));
}

result<void> path_opening::sync_name() const {
  auto folder = std::filesystem::path(path_).parent_path();
  unique_fd parent(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0)
    return fail_system(path_, "syncing its folder", errno);
  return {};
}

result<found_path> path_opening::look(const volume_owner& owner) {
  auto copies = read_superblocks(device_);
  if (!copies)
    return tl::unexpected(copies.error());
  found_path found;
  const auto& block = copies->newest;
  if (!block) {
    found.state = block.error().code != errc::not_found ? found_path::kind::other
                  : made_                               ? found_path::kind::missing
                                                        : found_path::kind::blank;
    found.why = {block.error().code, path_ + ": " + block.error().text};
  } else if (!(block->owner == owner_on_disk(owner))) {
    found.state = found_path::kind::other;
    found.why = {errc::denied, path_ + ": this volume belongs to " + describe(block->owner) + "; " +
                                   describe(owner_on_disk(owner)) +
                                   " was expected. Choose another path, or wipe it (disk.on_mismatch = "
                                   "\"wipe\") if nothing in it is needed"};
  } else if (block->stripe_bytes != 0) {
    found.state = found_path::kind::other;
    found.why = {errc::unsupported, path_ +
                                        ": objects of this volume are striped over its paths in units of " +
                                        std::to_string(block->stripe_bytes) +
                                        " bytes; expected whole objects. Wipe it to start over"};
  } else {
    found.state = found_path::kind::volume;
    found.block = *block;
    found.damaged_copy = describe_damaged_copy(*copies);
  }
  return found;
}

result<void> path_opening::erase_index(const volume_layout& layout) {
  aligned_buffer zeros(erased_together);
  auto erase = [&](uint64_t at, uint64_t end) -> result<void> {
    for (; at < end; at += std::min(end - at, zeros.size()))
      if (auto done = device_.write(at, zeros.bytes().first(std::min(end - at, zeros.size()))); !done)
        return done;
    return {};
  };
  for (uint64_t area : {uint64_t{0}, uint64_t{1}})
    if (auto done = erase(layout.checkpoint_area(area), layout.checkpoint_area(area) + superblock_bytes);
        !done)
      return done;
  return erase(layout.journal_begin, layout.journal_begin + layout.journal_bytes);
}

} // namespace terrace
