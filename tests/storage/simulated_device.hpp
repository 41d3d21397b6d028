// A disk in memory that fails as disks do. Bytes that were written and not synced may be gone after a crash,
// block by block and in any order; the test's dice decide which blocks are torn, rotten or unreadable.
#pragma once

#include "storage/volume_device.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace terrace {

class simulated_device : public volume_device {
 public:
  static constexpr uint64_t block_bytes = 4096;

  explicit simulated_device(uint64_t bytes) : now_(bytes), durable_(bytes) {}

  result<void> write(uint64_t offset, std::span<const std::byte> bytes) override;
  result<void> sync() override;
  result<uint64_t> size() override { return now_.size(); }
  result<void> resize(uint64_t bytes) override;
  result<void> read(uint64_t file_offset, std::span<std::byte> into) override;

  /// Writes as if the write ended early: only its first `blocks` blocks.
  void write_part(uint64_t offset, std::span<const std::byte> bytes, uint64_t blocks);

  /// This many writes, syncs and resizes succeed. The next one fails, after the first half if it is a write,
  /// and so do all that follow: the code that works on the device dies there.
  void fail_after(uint64_t operations) { operations_left_ = operations; }
  uint64_t operations() const { return operations_; }

  struct crash_faults {
    double lost = 0; ///< chance that a block that was not synced is gone
    double torn = 0; ///< chance that only the first half of another one was written
  };
  /// Cuts the power. Without faults it is the death of the process: everything that was written is there. The
  /// device works again.
  void crash(const crash_faults& faults, std::mt19937_64& dice);

  void flip_bit(uint64_t bit);
  /// Reads of that block fail from now on.
  void make_unreadable(uint64_t offset) { unreadable_.insert(offset / block_bytes); }

  std::span<const std::byte> bytes() const { return now_; }

 private:
  bool dies();

  std::vector<std::byte> now_;
  std::vector<std::byte> durable_;
  std::set<uint64_t> not_synced_; ///< blocks
  std::set<uint64_t> unreadable_;
  uint64_t operations_ = 0;
  uint64_t operations_left_ = UINT64_MAX;
  bool dead_ = false;
};

} // namespace terrace
