#include "storage/extent_file.hpp"

#include "storage/aligned_buffer.hpp"
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
#include <memory>

namespace terrace {

namespace {

constexpr uint64_t erased_together = 1ULL << 20; ///< bytes

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
  void keep_unless_created() { kept_ = !created_; }
  bool created() const { return created_; }

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

// What stands at the begin of the file. Errors: the device's.
result<found_path> look(const std::string& path, const store_owner& owner, file_device& device) {
  auto copies = read_superblocks(device);
  if (!copies)
    return tl::unexpected(copies.error());
  found_path found;
  const auto& block = copies->newest;
  if (!block) {
    found.what = block.error().code == errc::not_found ? found_path::kind::blank : found_path::kind::other;
    found.why = {block.error().code, path + ": " + block.error().text};
  } else if (!(block->owner == owner_on_disk(owner))) {
    found.what = found_path::kind::other;
    found.why = {errc::denied, path + ": this store belongs to " + describe(block->owner) + "; " +
                                   describe(owner) +
                                   " was expected. Choose another path, or wipe it (disk.on_mismatch = "
                                   "\"wipe\") if nothing in it is needed"};
  } else if (block->stripe_bytes != 0) {
    found.what = found_path::kind::other;
    found.why = {errc::unsupported, path + ": objects of this store are striped over its paths in units of " +
                                        std::to_string(block->stripe_bytes) +
                                        " bytes; whole objects were expected. Wipe it to start over"};
  } else {
    found.what = found_path::kind::store;
    found.block = *block;
  }
  return found;
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

/// One path on its way to be open.
struct opening {
  opening(const std::string& p, unique_fd f, bool created, off_t size)
      : path(p), fd(std::move(f)), device(p, fd.get()), guard(path, fd.get(), created, size),
        had_bytes(size != 0) {}

  const std::string& path;
  unique_fd fd;
  file_device device;
  size_guard guard;
  bool had_bytes;
};

result<std::unique_ptr<opening>> begin(const std::string& path) {
  bool created = false;
  auto fd = open_locked(path, created);
  if (!fd)
    return tl::unexpected(fd.error());
  struct stat before {};
  if (::fstat(fd->get(), &before) != 0)
    return fail_system(path, "looking at the store", errno);
  if (!S_ISREG(before.st_mode))
    return fail(errc::unsupported, path + ": a store is a regular file; this is something else");
  return std::make_unique<opening>(path, std::move(*fd), created, before.st_size);
}

/// A path that begins empty in a store that goes on: what its file has of the same store must not be found again.
result<void> erase_index(file_device& device, const store_layout& layout) {
  aligned_buffer zeros(erased_together);
  auto erase = [&](uint64_t at, uint64_t end) -> result<void> {
    for (; at < end; at += std::min(end - at, zeros.size()))
      if (auto done = device.write(at, zeros.bytes().first(std::min(end - at, zeros.size()))); !done)
        return done;
    return {};
  };
  for (uint64_t area : {uint64_t{0}, uint64_t{1}})
    if (auto done = erase(layout.checkpoint_area(area), layout.checkpoint_area(area) + superblock_bytes);
        !done)
      return done;
  return erase(layout.journal_begin, layout.journal_begin + layout.journal_bytes);
}

} // namespace

result<extent_file> extent_file::open(const extent_file_options& options) {
  auto files = open_all({.paths = {options.path},
                         .capacity_bytes = options.capacity_bytes,
                         .direct = options.direct,
                         .on_mismatch = options.wipe_foreign ? mismatch_rule::wipe : mismatch_rule::refuse,
                         .owner = options.owner,
                         .boot = options.boot});
  if (!files)
    return tl::unexpected(files.error());
  return std::move(files->front());
}

result<std::vector<extent_file>> extent_file::open_all(const extent_files_options& options) {
  uint64_t capacity = options.capacity_bytes / disk_alignment_bytes * disk_alignment_bytes;
  if (options.paths.empty() || options.paths.size() > UINT16_MAX)
    return fail(errc::bad_request,
                "a store needs 1 to 65535 paths; got " + std::to_string(options.paths.size()));
  std::vector<std::unique_ptr<opening>> openings;
  std::vector<found_path> found;
  for (const std::string& path : options.paths) {
    if (path.empty() || capacity < smallest_capacity_bytes || capacity > INT64_MAX)
      return fail(errc::bad_request, "a store needs a path and a capacity of 1 MiB or more; got '" + path +
                                         "' and " + std::to_string(options.capacity_bytes) + " bytes");
    auto one = begin(path);
    if (!one)
      return tl::unexpected(one.error());
    auto seen = look(path, options.owner, (*one)->device);
    if (!seen && options.on_mismatch != mismatch_rule::wipe)
      return tl::unexpected(seen.error());
    found.push_back(seen ? std::move(*seen) : found_path{found_path::kind::other, {}, seen.error()});
    if ((*one)->guard.created())
      found.back().what = found_path::kind::missing;
    openings.push_back(std::move(*one));
  }
  auto set = plan_paths(options.paths, found, options.on_mismatch);
  if (!set) {
    for (const auto& one : openings) // nothing was changed
      one->guard.keep_unless_created();
    return tl::unexpected(set.error());
  }
  // Every byte is allocated before the first object, so that no write can run out of space later.
  for (const auto& one : openings)
    if (auto done = one->device.resize(capacity); !done)
      return tl::unexpected(done.error());

  for (size_t i = 0; i < openings.size(); ++i)
    set->kept[i] = set->kept[i] && fits(found[i].block.layout, capacity);
  if (std::find(set->kept.begin(), set->kept.end(), true) == set->kept.end())
    set = path_set{.kept = set->kept};
  store_id store = set->store ? *set->store : random_store_id();
  std::vector<extent_file> files;
  for (size_t i = 0; i < openings.size(); ++i) {
    opening& one = *openings[i];
    superblock block;
    block.layout = set->kept[i] ? found[i].block.layout : layout_for(capacity);
    block.sequence = set->kept[i] ? found[i].block.sequence : 0;
    block.store = store;
    block.owner = owner_on_disk(options.owner);
    block.boot = options.boot;
    block.capacity_bytes = capacity;
    block.epoch = set->epoch;
    block.forgotten_below = set->forgotten_below;
    block.floors = set->floors;
    block.path_index = static_cast<uint16_t>(i);
    block.path_count = static_cast<uint16_t>(openings.size());
    if (!set->kept[i] && set->store && one.had_bytes)
      if (auto done = erase_index(one.device, block.layout); !done)
        return tl::unexpected(done.error());
    if (auto done = write_superblocks(one.device, block); !done)
      return tl::unexpected(done.error());
    extent_file file;
    file.path_ = one.path;
    file.block_ = std::move(block);
    file.made_new_ = !set->kept[i];
    file.buffered_reason_ =
        options.direct ? try_direct(one.fd.get()) : "O_DIRECT is turned off in the configuration";
    files.push_back(std::move(file));
  }
  for (size_t i = 0; i < openings.size(); ++i) {
    openings[i]->guard.keep();
    files[i].fd_ = std::move(openings[i]->fd);
  }
  return files;
}

uint64_t extent_file::alignment_bytes() const { return disk_alignment_bytes; }

} // namespace terrace
