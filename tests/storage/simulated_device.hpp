// A disk in memory that fails as disks do. What was written and not synced may be gone after a crash, block by block and
// in any order; what is torn, rotten or unreadable is so because the test's dice say so.
#pragma once

#include "storage/store_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace terrace {

class simulated_device : public store_reader {
 public:
  static constexpr uint64_t block_bytes = 4096;

  explicit simulated_device(uint64_t bytes) : now_(bytes), durable_(bytes) {}

  /// Seen by reads at once, durable after a sync.
  void write(uint64_t offset, std::span<const std::byte> bytes);
  /// As a write that ends early: only its first `blocks` blocks.
  void write_part(uint64_t offset, std::span<const std::byte> bytes, uint64_t blocks);
  void sync();

  struct crash_faults {
    double lost = 0; ///< of each block that was not synced: gone
    double torn = 0; ///< of each of the others: only its first half was written
  };
  /// Power cut. With no faults it is the death of the process: all that was written is there.
  void crash(const crash_faults& faults, std::mt19937_64& dice);

  void flip_bit(uint64_t bit);
  /// Reads of that block fail from now on.
  void make_unreadable(uint64_t offset) { unreadable_.insert(offset / block_bytes); }

  result<void> read(uint64_t file_offset, std::span<std::byte> into) override;

  std::span<const std::byte> bytes() const { return now_; }

 private:
  std::vector<std::byte> now_;
  std::vector<std::byte> durable_;
  std::set<uint64_t> not_synced_; ///< blocks
  std::set<uint64_t> unreadable_;
};

} // namespace terrace
