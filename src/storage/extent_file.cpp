#include "storage/extent_file.hpp"

#include "base/unique_fd.hpp"
#include "index/index_record.hpp"
#include "index/object_header.hpp"
#include "storage/aligned_buffer.hpp"
#include "storage/file_lock.hpp"
#include "storage/path_set.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"
#include "storage/volume_layout.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace terrace {

namespace {

// One path of a volume while it is being opened: the file is locked and examined, and restored unless it is
// kept. All calls block for as long as the device takes.

class path_opening {
 public:
  /// Opens the file, or creates an empty one, and locks it. Errors: `busy` if another process has it open,
  /// `unsupported` if it is not a regular file, and the system's.
  static result<std::unique_ptr<path_opening>> begin(const std::string& path);

  /// Unless `keep` was called, removes a file created by this opening and restores the size of any other.
  ~path_opening();
  path_opening(const path_opening&) = delete;
  path_opening& operator=(const path_opening&) = delete;

  /// Examines the start of the file. Errors: the device's.
  result<found_path> look(const volume_owner& owner);

  /// Overwrites the index with zeros, so that nothing previously in this file's volume is recovered.
  result<void> erase_index(const volume_layout& layout);

  /// Makes the file's name durable: an fsync of the file need not do so.
  result<void> sync_name() const;

  file_device& device() { return device_; }
  int fd() const { return fd_.get(); }
  bool made() const { return made_; }
  bool had_bytes() const { return size_ != 0; }

  /// The file was not changed, so a created file is removed and otherwise nothing needs restoring.
  void keep_unless_made() { kept_ = !made_; }
  unique_fd keep() {
    kept_ = true;
    return std::move(fd_);
  }

 private:
  path_opening(std::string path, unique_fd fd, bool made, off_t size);

  std::string path_;
  unique_fd fd_;
  file_device device_;
  bool made_;
  off_t size_;
  bool kept_ = false;
};

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

/// Returns the owner in its on-disk form.
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

} // namespace

/// All paths of a volume while they are being opened. If a path may be left out and turns out to be unusable,
/// the plan is repeated without it.
class volume_opener {
 public:
  volume_opener(const extent_files_options& options, bool may_lack_paths)
      : options_(options), may_lack_paths_(may_lack_paths),
        capacity_(options.capacity_bytes / disk_alignment_bytes * disk_alignment_bytes),
        new_volume_(random_volume_id()), began_empty_(options.paths.size()) {}

  result<open_volume> open() {
    if (auto good = check_options(); !good)
      return tl::unexpected(good.error());
    if (auto seen = look_at_all(); !seen)
      return tl::unexpected(seen.error());
    for (;;) {
      auto set = plan_paths(options_.paths, found_, options_.on_mismatch, may_lack_paths_, options_.clears);
      if (!set) {
        for (const auto& one : openings_)
          if (one)
            one->keep_unless_made();
        return tl::unexpected(set.error());
      }
      for (size_t i = 0; i < openings_.size(); ++i)
        if (set->left_out[i].code != errc::ok)
          openings_[i].reset();
      auto failed = make(*set);
      if (!failed)
        return finish(std::move(*set));
      if (!may_lack_paths_)
        return tl::unexpected(std::move(failed->why));
      found_[failed->path] = {found_path::kind::unreadable, {}, std::move(failed->why)};
    }
  }

 private:
  result<void> check_options() const {
    if (options_.paths.empty() || options_.paths.size() > superblock::paths_max)
      return fail(errc::bad_request, "a volume needs 1 to " + std::to_string(superblock::paths_max) +
                                         " paths; got " + std::to_string(options_.paths.size()));
    for (const std::string& path : options_.paths)
      if (path.empty() || capacity_ < smallest_capacity_bytes || capacity_ > INT64_MAX)
        return fail(errc::bad_request, "a volume needs a path and a capacity of 1 MiB or more; got '" + path +
                                           "' and " + std::to_string(options_.capacity_bytes) + " bytes");
    return {};
  }

  /// Locks and examines all paths before any is changed. Errors: `busy`, because the other process will end.
  result<void> look_at_all() {
    for (const std::string& path : options_.paths) {
      auto one = path_opening::begin(path);
      if (!one && one.error().code == errc::busy)
        return tl::unexpected(one.error());
      found_.push_back(one ? look(**one) : found_path{found_path::kind::unreadable, {}, one.error()});
      damaged_copies_.push_back(found_.back().damaged_copy);
      openings_.push_back(one ? std::move(*one) : nullptr);
    }
    return {};
  }

  found_path look(path_opening& one) const {
    auto seen = one.look(options_.owner);
    if (seen)
      return *seen;
    bool overwritten = options_.on_mismatch == mismatch_rule::wipe;
    return {overwritten ? found_path::kind::other : found_path::kind::unreadable, {}, seen.error()};
  }

  /// Changes the files as planned, and makes the superblocks and the files' names durable. Returns the first path that failed.
  std::optional<left_out_path> make(path_set& set) {
    // Every byte is allocated before the first object, so that no write runs out of space later.
    for (size_t i = 0; i < openings_.size(); ++i)
      if (openings_[i])
        if (auto done = openings_[i]->device().resize(capacity_); !done)
          return left_out_path{i, done.error()};
    for (size_t i = 0; i < openings_.size(); ++i)
      set.kept[i] = set.kept[i] && fits(found_[i].block.layout, capacity_);
    if (std::find(set.kept.begin(), set.kept.end(), true) == set.kept.end())
      set = path_set{.kept = set.kept, .left_out = set.left_out};
    for (size_t i = 0; i < openings_.size(); ++i) {
      if (!openings_[i])
        continue;
      superblock block = block_of(set, i);
      if (!set.kept[i] && set.volume && openings_[i]->had_bytes())
        if (auto done = openings_[i]->erase_index(block.layout); !done)
          return left_out_path{i, done.error()};
      if (auto done = write_superblocks(openings_[i]->device(), block); !done)
        return left_out_path{i, done.error()};
      // A daemon that was killed may have made the file, so this is not only for new ones.
      if (auto done = openings_[i]->sync_name(); !done)
        return left_out_path{i, done.error()};
      began_empty_[i] = began_empty_[i] || !set.kept[i];
      found_[i] = {found_path::kind::volume, std::move(block), {}};
    }
    return std::nullopt;
  }

  superblock block_of(const path_set& set, size_t i) const {
    superblock block;
    block.layout = set.kept[i] ? found_[i].block.layout : layout_for(capacity_, 0, options_.object_bytes);
    block.sequence = set.kept[i] ? found_[i].block.sequence : 0;
    block.volume = set.volume.value_or(new_volume_);
    block.owner = owner_on_disk(options_.owner);
    block.boot = options_.boot;
    block.capacity_bytes = capacity_;
    block.epoch = set.epoch;
    block.forgotten_below = set.forgotten_below;
    block.floors = set.floors;
    block.path_index = static_cast<uint16_t>(i);
    block.path_count = static_cast<uint16_t>(openings_.size());
    for (size_t path = 0; path < set.left_out.size(); ++path)
      if (set.left_out[path].code != errc::ok)
        block.missing |= path_bit(path);
    return block;
  }

  open_volume finish(path_set set) {
    open_volume opened;
    for (size_t i = 0; i < openings_.size(); ++i) {
      if (!openings_[i]) {
        opened.left_out.push_back({i, std::move(set.left_out[i])});
        continue;
      }
      extent_file file;
      file.path_ = options_.paths[i];
      file.block_ = std::move(found_[i].block);
      file.made_new_ = began_empty_[i];
      file.damaged_superblock_ = damaged_copies_[i];
      file.buffered_reason_ =
          options_.direct ? try_direct(openings_[i]->fd()) : "O_DIRECT is turned off in the configuration";
      file.fd_ = openings_[i]->keep();
      if (options_.for_readers)
        file.open_once_more();
      opened.files.push_back(std::move(file));
    }
    return opened;
  }

  const extent_files_options& options_;
  bool may_lack_paths_;
  uint64_t capacity_;
  volume_id new_volume_;
  std::vector<found_path> found_;
  std::vector<std::unique_ptr<path_opening>> openings_; ///< null: left out
  std::vector<bool> began_empty_;
  std::vector<std::string> damaged_copies_; ///< defects as found, before both copies are rewritten
};

result<extent_file> extent_file::open(const extent_file_options& options) {
  auto files = open_all({.paths = {options.path},
                         .capacity_bytes = options.capacity_bytes,
                         .direct = options.direct,
                         .on_mismatch = options.wipe_foreign ? mismatch_rule::wipe : mismatch_rule::refuse,
                         .owner = options.owner,
                         .boot = options.boot,
                         .for_readers = options.for_readers});
  if (!files)
    return tl::unexpected(files.error());
  return std::move(files->front());
}

result<std::vector<extent_file>> extent_file::open_all(const extent_files_options& options) {
  auto opened = volume_opener(options, false).open();
  if (!opened)
    return tl::unexpected(opened.error());
  return std::move(opened->files);
}

result<open_volume> extent_file::open_those_there(const extent_files_options& options) {
  return volume_opener(options, true).open();
}

void extent_file::open_once_more() {
  if (!direct()) {
    readers_refusal_ = path_ + ": " + buffered_reason_;
    return;
  }
  auto opened = open_for_readers(fd(), path_);
  if (opened)
    for_readers_ = std::move(*opened);
  else
    readers_refusal_ = opened.error().text;
}

uint64_t extent_file::alignment_bytes() const { return disk_alignment_bytes; }

} // namespace terrace
