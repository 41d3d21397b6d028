#include "storage/volume_inspection.hpp"

#include "storage/aligned_buffer.hpp"
#include "storage/live_objects.hpp"
#include "storage/offline_volume.hpp"
#include "storage/superblock_copies.hpp"

namespace terrace {

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

} // namespace terrace
