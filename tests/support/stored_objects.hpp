// Objects with real headers and payloads, and stores that hold them, for tests of the contents of disks. A
// payload follows from its key, so that a reader can tell whether an object is the right one.
#pragma once

#include "base/object_key.hpp"
#include "index/payload_checksum.hpp"
#include "storage/index_journal.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"
#include "storage/volume_layout.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

namespace terrace::test {

inline space_fingerprint fingerprint_of(uint32_t space) { return {static_cast<uint8_t>(space), 0x77}; }

inline digest digest_of(uint64_t chunk) {
  digest d;
  for (size_t i = 0; i < d.bytes.size(); ++i)
    d.bytes[i] = static_cast<uint8_t>(chunk >> 8 * (i % 8));
  return d;
}

inline uint64_t chunk_of(const digest& d) {
  uint64_t chunk;
  std::memcpy(&chunk, d.bytes.data(), sizeof chunk);
  return chunk;
}

inline std::vector<std::byte> content_of(const index_record& record) {
  std::vector<std::byte> payload(record.payload_bytes);
  uint64_t word = chunk_of(record.chunk) * 31 + record.space;
  for (size_t at = 0; at + sizeof word <= payload.size(); at += sizeof word) {
    word = detail::mix64(word + at);
    std::memcpy(payload.data() + at, &word, sizeof word);
  }
  return payload;
}

inline object_identity identity_of(const index_record& record, const volume_id& volume) {
  return {.space = fingerprint_of(record.space),
          .pool = record.pool,
          .rank = record.rank,
          .chunk = record.chunk,
          .generation = record.generation,
          .epoch = epoch_of(record.generation),
          .volume = volume};
}

inline void write_object(volume_device& to, const superblock& block, const index_record& record) {
  aligned_buffer bytes(record.physical_bytes);
  auto payload = content_of(record);
  std::copy(payload.begin(), payload.end(), bytes.data() + object_header_bytes);
  encode(object_header{identity_of(record, block.volume), record.payload_bytes, record.physical_bytes,
                       payload_checksum(payload)},
         std::span<std::byte, object_header_bytes>(bytes.data(), object_header_bytes));
  to.write(block.layout.extents_begin + record.offset, bytes.bytes());
}

/// A store as a daemon leaves it, made on any device. Everything added is journalled; `checkpoint` writes all
/// of the index as well.
class volume_builder {
 public:
  volume_builder(volume_device& on, uint64_t capacity_bytes) : on_(on) {
    block_.volume.bytes = {1, 2, 3};
    block_.owner.group = "tests";
    block_.capacity_bytes = capacity_bytes;
    block_.layout = layout_for(capacity_bytes);
    block_.epoch = 3;
    check(on_.resize(capacity_bytes));
    check(write_superblocks(on_, block_));
    journal_.emplace(block_, journal_position{});
    next_generation_ = first_generation(block_.epoch);
  }

  const superblock& block() const { return block_; }
  const std::map<uint64_t, index_record>& objects() const { return objects_; } ///< by offset

  uint64_t arena_bytes() const { return block_.capacity_bytes - block_.layout.extents_begin; }

  /// Adds an object at that offset of the arena, or after all others.
  index_record add(uint32_t space, uint64_t chunk, uint32_t payload_bytes, uint64_t offset = UINT64_MAX) {
    index_record record;
    record.space = space;
    record.chunk = digest_of(chunk);
    record.payload_bytes = payload_bytes;
    record.physical_bytes = physical_bytes_for(payload_bytes);
    record.offset = offset != UINT64_MAX ? offset : end_;
    record.generation = next_generation_++;
    write_object(on_, block_, record);
    if (!std::exchange(told_[space], true))
      journal_->add(space_record(space, fingerprint_of(space)));
    journal_->add(record);
    objects_[record.offset] = record;
    end_ = std::max(end_, record.offset + record.physical_bytes);
    write();
    return record;
  }

  void remove(const index_record& object) {
    journal_->add(removal_of(object));
    objects_.erase(object.offset);
    write();
  }

  void checkpoint() {
    journal_->begin_checkpoint();
    std::vector<index_record> all;
    for (const auto& [space, told] : told_)
      all.push_back(space_record(space, fingerprint_of(space)));
    for (const auto& [offset, object] : objects_)
      all.push_back(object);
    journal_->add_image(all);
    journal_->end_image();
    write();
  }

 private:
  static void check(const result<void>& done) {
    if (!done)
      throw std::runtime_error(done.error().text); // the test cannot be set up
  }

  void write() {
    while (auto io = journal_->next()) {
      check(io->wanted == journal_io::action::sync ? on_.sync()
                                                   : on_.write(io->file_offset, io->memory->bytes()));
      journal_->completed(true);
    }
    check(on_.sync());
    if (journal_->checkpoint_due())
      checkpoint();
  }

  volume_device& on_;
  superblock block_;
  std::optional<index_journal> journal_;
  std::map<uint64_t, index_record> objects_;
  std::map<uint32_t, bool> told_;
  uint64_t end_ = 0;
  uint64_t next_generation_ = 0;
};

} // namespace terrace::test
