#include "storage/superblock_copies.hpp"

#include "storage/aligned_buffer.hpp"

#include <algorithm>

namespace terrace {

namespace {

result<void> write_durably(volume_device& to, uint64_t offset, const aligned_buffer& bytes) {
  if (auto done = to.write(offset, bytes.bytes()); !done)
    return done;
  return to.sync();
}

result<superblock> no_superblock() { return fail(errc::not_found, "no superblock yet"); }

} // namespace

result<superblock_copies> read_superblocks(volume_device& from) {
  auto size = from.size();
  if (!size)
    return tl::unexpected(size.error());
  aligned_buffer bytes(2 * superblock_bytes);
  std::span<const std::byte, 2 * superblock_bytes> both(bytes.data(), bytes.size());
  result<void> read;
  superblock_copies copies{{no_superblock(), no_superblock()}, no_superblock()};
  for (size_t copy = 0; copy < 2; ++copy) {
    uint64_t begin = copy * superblock_bytes;
    auto into = bytes.bytes().subspan(begin, std::min(superblock_bytes, *size - std::min(*size, begin)));
    if (auto done = into.empty() ? result<void>() : from.read(begin, into); !done) {
      copies.each[copy] = tl::unexpected(done.error());
      read = done;
    } else {
      copies.each[copy] = decode_superblock(
          std::span<const std::byte, superblock_bytes>(bytes.data() + begin, superblock_bytes));
    }
  }
  copies.newest = newest_superblock(both);
  if (!copies.newest && copies.newest.error().code == errc::not_found && !read)
    return tl::unexpected(read.error());
  return copies;
}

std::string describe_damaged_copy(const superblock_copies& copies) {
  if (!copies.newest)
    return {};
  for (size_t copy = 0; copy < copies.each.size(); ++copy) {
    const auto& one = copies.each[copy];
    bool never_written = copies.newest->sequence == 1 && !one && one.error().code == errc::not_found;
    if (!one && !never_written)
      return "copy " + std::to_string(copy) + ": " + one.error().text;
  }
  return {};
}

result<void> write_superblocks(volume_device& to, superblock& block) {
  aligned_buffer bytes(superblock_bytes);
  for (int copy = 0; copy < 2; ++copy) {
    ++block.sequence;
    encode(block, std::span<std::byte, superblock_bytes>(bytes.data(), superblock_bytes));
    if (auto done = write_durably(to, superblock_offset(block.sequence), bytes); !done)
      return done;
  }
  return {};
}

result<void> erase_superblocks(volume_device& to, uint64_t newest_sequence) {
  aligned_buffer zeros(superblock_bytes);
  if (auto done = write_durably(to, superblock_offset(newest_sequence + 1), zeros); !done)
    return done;
  // The block has nothing but its magic, so whatever part of the last write arrives, the disk has this or zeros.
  constexpr size_t magic_bytes = 8;
  aligned_buffer magic(superblock_bytes);
  encode(superblock{}, std::span<std::byte, superblock_bytes>(magic.data(), superblock_bytes));
  std::fill(magic.data() + magic_bytes, magic.data() + superblock_bytes, std::byte{0});
  for (const aligned_buffer* bytes : {&magic, &zeros})
    if (auto done = write_durably(to, superblock_offset(newest_sequence), *bytes); !done)
      return done;
  return {};
}

} // namespace terrace
