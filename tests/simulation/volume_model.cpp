#include "volume_model.hpp"

#include "index/payload_checksum.hpp"
#include "storage/object_check.hpp"
#include "storage/superblock.hpp"
#include "tests/support/stored_objects.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace terrace::simulation {

using test::fingerprint_of;

namespace {

std::string text_of(const index_record& record) {
  return "object " + std::to_string(test::chunk_of(record.chunk)) + " of space " +
         std::to_string(record.space) + ", epoch " + std::to_string(epoch_of(record.generation)) +
         ", number " + std::to_string(record.generation & ((1ULL << generation_number_bits) - 1)) + ", at " +
         std::to_string(record.offset);
}

} // namespace

result<void> disk_volume::finish(const char* what, int64_t code) {
  after_each_();
  if (code < 0)
    return fail_system(volume_model::path, what, static_cast<int>(-code));
  return {};
}

result<void> disk_volume::read(uint64_t file_offset, std::span<std::byte> into) {
  while (!into.empty()) {
    int64_t count = disk_.read(descriptor_, file_offset, into);
    if (count <= 0)
      return fail_system(volume_model::path, "reading", count == 0 ? EIO : static_cast<int>(-count));
    into = into.subspan(static_cast<size_t>(count));
    file_offset += static_cast<uint64_t>(count);
  }
  return {};
}

result<void> disk_volume::write(uint64_t file_offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    int64_t count = disk_.write(descriptor_, file_offset, bytes);
    if (auto done = finish("writing", count); !done)
      return done;
    bytes = bytes.subspan(static_cast<size_t>(count));
    file_offset += static_cast<uint64_t>(count);
  }
  return {};
}

result<void> disk_volume::sync() { return finish("syncing", disk_.fsync(descriptor_)); }

result<uint64_t> disk_volume::size() {
  file_facts facts;
  if (int refused = disk_.fstat(descriptor_, facts); refused != 0)
    return fail_system(volume_model::path, "examining", -refused);
  return facts.bytes;
}

result<void> disk_volume::resize(uint64_t bytes) {
  return finish("allocating", disk_.fallocate(descriptor_, bytes));
}

std::shared_ptr<aligned_buffer> object_bytes(const index_record& record, const superblock& block) {
  auto bytes = std::make_shared<aligned_buffer>(record.physical_bytes);
  auto payload = bytes->bytes().subspan(object_header_bytes, record.payload_bytes);
  seeded_random content(record.generation);
  for (size_t at = 0; at < payload.size(); at += sizeof(uint64_t)) {
    uint64_t word = content.next();
    std::memcpy(payload.data() + at, &word, std::min(sizeof word, payload.size() - at));
  }
  encode(object_header{test::identity_of(record, block.volume), record.payload_bytes, record.physical_bytes,
                       payload_checksum(payload)},
         std::span<std::byte, object_header_bytes>(bytes->data(), object_header_bytes));
  return bytes;
}

void volume_model::writes(const index_record& record) {
  if (written_.contains(record.generation))
    broke_unless(epoch_unrecorded_, "a generation is used again: " + text_of(record));
  written_.emplace(record.generation, record);
}

bool volume_model::was_written(const index_record& record) const {
  auto [first, last] = written_.equal_range(record.generation);
  return std::any_of(first, last, [&](const auto& entry) { return entry.second == record; });
}

void volume_model::cleared(std::optional<uint32_t> space, uint64_t floor) {
  for (uint32_t s = 1; s <= spaces; ++s)
    if (!space || s == *space)
      floors_[s] = std::max(floors_[s], floor);
}

size_t volume_model::check(simulated_disk& disk) {
  int descriptor = disk.open(path, O_RDWR | O_DIRECT);
  if (descriptor < 0) {
    if (epoch_ != 0)
      broke("the volume is gone");
    return 0;
  }
  disk_volume device(disk, descriptor);
  auto copies = read_superblocks(device);
  if (!copies || !copies->newest) {
    if (epoch_ != 0)
      broke("no superblock: " + (copies ? copies->newest.error().text : copies.error().text));
    return 0;
  }
  const superblock& block = *copies->newest;
  auto found = recover(device, block, file_bytes - block.layout.extents_begin);
  check_found(found, block);
  return check_objects(device, found, block);
}

void volume_model::check_found(const recovered_volume& found, const superblock& block) {
  if (block.epoch < epoch_)
    broke("epoch " + std::to_string(block.epoch) + " instead of " + std::to_string(epoch_));
  std::set<uint64_t> generations;
  for (const index_record& object : found.objects) {
    generations.insert(object.generation);
    clears_checked_ += floors_.contains(object.space);
    if (epoch_of(object.generation) < floors_[object.space])
      broke("what was cleared is back: " + text_of(object));
    if (!was_written(object))
      broke("nobody wrote this: " + text_of(object));
  }
  for (const auto& [generation, object] : promised_) {
    ++promises_checked_;
    if (!generations.contains(generation))
      broke("the index of a durable checkpoint has lost " + text_of(object));
  }
}

size_t volume_model::check_objects(volume_reader& from, const recovered_volume& found,
                                   const superblock& block) {
  size_t intact = 0;
  for (const index_record& object : found.objects) {
    if (is_intact(from, block, object))
      ++intact;
    else if (promised_.contains(object.generation))
      broke("a durable checkpoint has lost the bytes of " + text_of(object));
  }
  return intact;
}

bool volume_model::is_intact(volume_reader& from, const superblock& block, const index_record& record) {
  object_checker checker(from, block, 4 * disk_alignment_bytes);
  if (checker.check(record, fingerprint_of(record.space)).state != stored_state::intact)
    return false;
  aligned_buffer bytes(record.physical_bytes);
  if (!from.read(block.layout.extents_begin + record.offset, bytes.bytes()))
    return false;
  uint64_t used = object_header_bytes + record.payload_bytes; // what follows may be anything
  if (!std::ranges::equal(bytes.bytes().first(used), object_bytes(record, block)->bytes().first(used)))
    broke("wrong bytes would be served: " + text_of(record));
  return true;
}

} // namespace terrace::simulation
