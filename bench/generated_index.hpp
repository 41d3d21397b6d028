// The metadata of a store with many objects, without the objects: for measuring and testing recovery.
#pragma once

#include "storage/index_journal.hpp"
#include "storage/volume_device.hpp"
#include "storage/volume_layout.hpp"

#include <cstring>
#include <numeric>
#include <vector>

namespace terrace::bench {

/// Objects of 48 KiB fill the arena. They are written as a daemon writes them, with `index_journal`: all in a
/// checkpoint, in the disorder of a hash table; then the journal replaces every twentieth by a newer one at
/// its place.
class generated_index {
 public:
  static constexpr uint64_t object_bytes = 48 << 10;
  static constexpr uint32_t spaces = 8;

  /// Errors: the device's. Needs no more than `metadata_bytes()` of it. `fingerprints`: those of the spaces;
  /// empty: made up.
  static result<generated_index> write(volume_device& to, uint64_t objects,
                                       std::vector<space_fingerprint> fingerprints = {}) {
    generated_index made(objects);
    for (uint32_t space = 1; fingerprints.size() < spaces; ++space)
      fingerprints.push_back({static_cast<uint8_t>(space)});
    made.fingerprints_ = std::move(fingerprints);
    if (auto done = to.resize(made.metadata_bytes()); !done)
      return tl::unexpected(done.error());
    index_journal journal(made.block_, {});
    if (auto done = made.write_image(to, journal); !done)
      return tl::unexpected(done.error());
    for (uint64_t n = 0; n < objects; n += replaced_one_in) {
      journal.add(removal_of(made.record(n, n)));
      journal.add(made.record(n, objects + n));
      if (n % 100'000 == 0)
        if (auto done = do_io(to, journal); !done)
          return tl::unexpected(done.error());
    }
    if (auto done = do_io(to, journal); !done)
      return tl::unexpected(done.error());
    return made;
  }

  /// Returns the capacity of a volume with room for these objects.
  static uint64_t capacity_bytes_for(uint64_t objects) {
    return generated_index(objects).block_.capacity_bytes;
  }

  const superblock& block() const { return block_; }
  uint64_t objects() const { return objects_; }
  uint64_t metadata_bytes() const { return block_.layout.extents_begin; }
  uint64_t arena_bytes() const { return block_.capacity_bytes - block_.layout.extents_begin; }

  /// Returns the record that must be found at the n-th place.
  index_record expected(uint64_t n) const { return record(n, n % replaced_one_in == 0 ? objects_ + n : n); }

 private:
  static constexpr uint64_t replaced_one_in = 20;

  /// Returns the record of the object at the n-th place when it was written as the g-th.
  index_record record(uint64_t n, uint64_t g) const {
    index_record r;
    r.space = 1 + static_cast<uint32_t>(n % spaces);
    for (uint64_t word = 0; word < 4; ++word) {
      uint64_t bits = (g * 4 + word + 1) * 0x9e3779b97f4a7c15ULL;
      std::memcpy(r.chunk.bytes.data() + word * sizeof bits, &bits, sizeof bits);
    }
    r.parent = r.chunk;
    r.payload_bytes = object_bytes - object_header_bytes;
    r.physical_bytes = object_bytes;
    r.offset = n * object_bytes;
    r.generation = first_generation(1) + g;
    return r;
  }

  explicit generated_index(uint64_t objects) : objects_(objects) {
    block_.volume.bytes = {1, 2, 3};
    block_.epoch = 1;
    block_.capacity_bytes = smallest_capacity_bytes;
    block_.layout = layout_for(block_.capacity_bytes);
    // The volume's own index takes half a percent of it.
    while (arena_bytes() < objects * object_bytes) {
      block_.capacity_bytes += objects * object_bytes - arena_bytes();
      block_.layout = layout_for(block_.capacity_bytes);
    }
  }

  result<void> write_image(volume_device& to, index_journal& journal) {
    std::vector<index_record> part;
    for (uint32_t space = 1; space <= spaces; ++space)
      part.push_back(space_record(space, fingerprints_[space - 1]));
    journal.begin_checkpoint();
    uint64_t step = objects_ * 5 / 8 + 1; // a step that meets every number once
    while (std::gcd(step, objects_) != 1)
      ++step;
    uint64_t next = 0;
    for (uint64_t at = 0; journal.checkpoint_in_progress();) {
      while (journal.wants_image()) {
        for (; next < objects_ && part.size() < 4096; ++next, at = (at + step) % objects_)
          part.push_back(record(at, at));
        journal.add_image(part);
        part.clear();
        if (next == objects_)
          journal.end_image();
      }
      if (auto done = do_io(to, journal); !done)
        return done;
    }
    return {};
  }

  static result<void> do_io(volume_device& to, index_journal& journal) {
    while (auto io = journal.next()) {
      auto done =
          io->wanted == journal_io::action::sync ? to.sync() : to.write(io->file_offset, io->memory->bytes());
      if (!done)
        return done;
      journal.completed(true);
    }
    return {};
  }

  superblock block_;
  uint64_t objects_;
  std::vector<space_fingerprint> fingerprints_;
};

} // namespace terrace::bench
