#include "storage/offline_volume.hpp"

#include "base/printable.hpp"
#include "storage/aligned_buffer.hpp"
#include "storage/file_lock.hpp"
#include "storage/live_objects.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_layout.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

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

namespace {

inspected_checkpoint read_checkpoint(volume_device& from, const superblock& block, uint64_t area) {
  aligned_buffer bytes(checkpoint_header_bytes);
  if (auto done = from.read(block.layout.checkpoint_area(area), bytes.bytes()); !done)
    return {std::nullopt, done.error().text};
  auto header = decode_checkpoint_header(
      block.volume, std::span<const std::byte, checkpoint_header_bytes>(bytes.data(), bytes.size()));
  if (header)
    return {*header, {}};
  return {std::nullopt, header.error().code == errc::not_found ? std::string() : header.error().text};
}

} // namespace

uint64_t volume_inspection::problems() const {
  uint64_t count = found.counts.damaged_blocks + found.counts.missing_blocks + found.counts.damaged_records;
  for (const std::string& problem : superblock_problems)
    count += !problem.empty();
  for (const inspected_checkpoint& checkpoint : checkpoints)
    count += !checkpoint.problem.empty();
  return count + (file_bytes < block.capacity_bytes);
}

result<volume_inspection> inspect(volume_device& from) {
  auto block = read_volume(from);
  if (!block)
    return tl::unexpected(block.error());
  volume_inspection is;
  is.block = std::move(*block);
  auto size = from.size();
  auto copies = read_superblocks(from);
  if (!size || !copies)
    return tl::unexpected(size ? copies.error() : size.error());
  for (size_t copy = 0; copy < 2; ++copy)
    if (const auto& read = copies->each[copy]; !read && !describe_damaged_copy(*copies).empty())
      is.superblock_problems[copy] = read.error().text;
  is.file_bytes = *size;
  is.arena_bytes = arena_bytes(is.block, is.file_bytes);
  for (uint64_t area = 0; area < 2; ++area)
    is.checkpoints[area] = read_checkpoint(from, is.block, area);
  is.found = recover(from, is.block, is.arena_bytes);
  is.superseded = keep_newest_of_each_key(is.found.objects);
  return is;
}

namespace {

/// Says what the file would forget if it had `bytes` bytes; empty: nothing.
std::string describe_shrinking(const std::string& path, uint64_t bytes, const volume_owner& owner) {
  // Opening does not wait for a writer if the path is a FIFO.
  unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat is {};
  if (!fd || ::fstat(fd.get(), &is) != 0 || !S_ISREG(is.st_mode))
    return {};
  if (is.st_size % static_cast<off_t>(disk_alignment_bytes) == 0)
    (void) try_direct(fd.get()); // if this fails, the page cache is used
  file_device device(path, fd.get());
  auto block = read_volume(device);
  if (!block || block->owner.machine != owner.machine ||
      block->owner.group != owner.group.substr(0, volume_owner::group_bytes_max) ||
      bytes >= block->capacity_bytes)
    return {};
  bool keeps = fits(block->layout, bytes); // otherwise it starts over
  auto size = static_cast<uint64_t>(is.st_size);
  auto found = recover(device, *block, arena_bytes(*block, keeps ? std::min(bytes, size) : size));
  uint64_t objects = found.objects.size() + found.counts.outside;
  uint64_t lost = keeps ? found.counts.outside : objects;
  if (lost == 0)
    return {};
  return path + ": disk.bytes makes this file smaller, " +
         readable_change(bytes, " instead of ", block->capacity_bytes) + ", and the next start forgets " +
         format_count(lost) + " of its " + format_counted(objects, "object") +
         (keeps ? ", which lie behind the new end: `terrace disk resize " + path + " " +
                      std::to_string(bytes) + "` before it moves what has room"
                : ": its index would take too much of it, so that it starts over");
}

} // namespace

std::vector<std::string> describe_shrinking(const extent_files_options& files) {
  uint64_t bytes = files.capacity_bytes / disk_alignment_bytes * disk_alignment_bytes;
  std::vector<std::string> found;
  for (const std::string& path : files.paths)
    if (std::string line = describe_shrinking(path, bytes, files.owner); !line.empty())
      found.push_back(std::move(line));
  return found;
}

} // namespace terrace
