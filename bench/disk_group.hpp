// A daemon with a disk tier and its client, as the disk benchmarks use them.
#pragma once

#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/workload.hpp"

#include <cstdint>
#include <vector>

namespace terrace::bench {

constexpr uint32_t disk_depth = 32;

class disk_group {
 public:
  /// All objects have one size; the disk has room for `disk_objects` of them.
  disk_group(const settings& options, uint64_t object_bytes, size_t disk_objects, uint64_t host_bytes);

  /// Stores that many new objects, each a chain of its own, `disk_depth` at a time, until all are on disk.
  /// Returns bytes per second.
  double store(size_t objects, std::vector<digest>* names = nullptr);

  /// Stores one chain of new objects from the client's memory in one request, as an engine stores a prompt,
  /// and waits until all of it is on disk. Returns the digests of its chunks.
  std::vector<digest> store_chain(client::connection& client, const client::space& in,
                                  const client::registered_region& region, std::span<const client::run> runs);

  /// Brings every object into host memory, in place and under a lease. Keeps more requests in flight than
  /// `disk_depth`, the number of reads that the daemon keeps at the device. Returns the bytes per second that
  /// came from disk; they must be at least half of all.
  double load(const std::vector<digest>& names);

  /// Returns when nothing that was stored waits for the disk any more.
  void drain();

  /// The daemon's file of extents.
  std::string file() const { return daemon_.state() + "/terrace.extents"; }

  /// Offset of the first extent in the file (docs/disk-format.md); the part before it is hardly ever written.
  uint64_t extents_begin() const;

  std::string socket() const { return daemon_.socket(); }
  client::connection& connection() { return connection_; }

 private:
  /// Waits until `bytes` more than `before` are on disk.
  void wait_for_written(uint64_t before, uint64_t bytes);

  uint64_t object_bytes_;
  uint64_t host_bytes_;
  bench_daemon daemon_;
  client::connection connection_;
  client::space space_;
  client::region memory_;
  client::registered_region region_;
  uint64_t seed_ = 1000;
};

} // namespace terrace::bench
