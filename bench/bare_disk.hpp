// The limit of the disk tier: a bare io_uring loop with O_DIRECT on a file in the same state.
#pragma once

#include "base/unique_fd.hpp"
#include "bench/shared_memory.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace::bench {

/// Uses its own file, which is fallocated, not yet written, and removed at the end. Blocks go to and from a
/// memfd of `memory_bytes` (at least one block for each of `depth`), one part of it after the other. The
/// memory is allocated with the first pass. Give it the size of the daemon's arena, and begin when the daemon
/// has returned its own: then both have similar pages. Memory that fits the caches, or that happens to lie in
/// longer runs, makes a virtual disk up to twice as fast.
class bare_disk {
 public:
  bare_disk(const std::string& folder, uint64_t bytes, uint32_t block_bytes, uint64_t memory_bytes = 0,
            uint32_t depth = 32);
  /// Reads `bytes` of a daemon's own file from `begin` on: the same blocks of the same device. Blocks that
  /// were never written would be read without the device. The daemon may end before the first pass.
  static bare_disk on(const std::string& file, uint64_t begin, uint64_t bytes, uint32_t block_bytes,
                      uint64_t memory_bytes = 0, uint32_t depth = 32);
  bare_disk(const bare_disk&) = delete;
  bare_disk& operator=(const bare_disk&) = delete;
  ~bare_disk();

  /// Writes every block of the file once, in order, `depth` at a time. Returns bytes per second.
  double write_all() { return pass(true); }
  double read_all() { return pass(false); }

  /// Returns the file to unwritten extents.
  void forget();

  /// Name of the file while this object lives, even if the file was removed.
  std::string path() const;

  /// Whether the file system accepted O_DIRECT; without it the page cache is measured.
  bool direct() const { return direct_; }

 private:
  bare_disk(unique_fd fd, bool direct, uint64_t begin, uint64_t bytes, uint32_t block_bytes,
            uint64_t memory_bytes, uint32_t depth);
  double pass(bool writing);

  std::string path_;   ///< empty: the file belongs to somebody else and is not removed
  uint64_t begin_ = 0; ///< offset of the blocks in the file
  uint64_t bytes_;
  uint32_t block_bytes_;
  uint32_t depth_;
  uint64_t memory_bytes_;
  std::unique_ptr<shared_memory> memory_;
  unique_fd fd_;
  bool direct_ = true;
};

} // namespace terrace::bench
