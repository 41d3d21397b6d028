// A daemon with a remote tier on a redis-server of this machine, and chains that are only there.
#pragma once

#include "bench/bare_store.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/workload.hpp"
#include "tests/support/redis_process.hpp"
#include "tests/support/s3_process.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace terrace::bench {

constexpr uint64_t far_mib = 1ULL << 20;
constexpr uint64_t far_bytes = 256 * far_mib;

/// Waits for it; ends the benchmark, which says `what`, if it takes a minute.
void await(const char* what, const std::function<bool()>& there);

/// Everything that is stored is written to the store. There is no disk.
class far_daemon {
 public:
  /// `more`: options of [[remote]]. `bucket`: of a store that the daemon uses instead of redis-server, which then serves the
  /// bare client alone; null: none.
  explicit far_daemon(const settings& options, const std::string& more = "",
                      const test::s3_process* bucket = nullptr);

  /// Otherwise the benchmark cannot run, and has said why.
  static bool possible();

  client::connection& client() { return client_; }
  bench_daemon& daemon() { return daemon_; }
  bare_store& bare() { return bare_; }
  pid_t store() const { return store_.pid(); }
  uint16_t port() const { return port_; } ///< of the store

 private:
  std::string section(const std::string& folder, const std::string& more,
                      const test::s3_process* bucket) const;

  uint16_t port_;
  test::redis_process store_;
  bare_store bare_;
  bench_daemon daemon_;
  client::connection client_;
};

/// A client with a region for 256 MiB, and a chain of as many bytes.
class far_chain {
 public:
  far_chain(far_daemon& in, uint64_t object_bytes);
  /// Its content becomes gaussian noise in bfloat16.
  void use_floats();
  std::span<const uint8_t> content() const { return memory_.bytes(); }

  size_t objects() const { return far_bytes / object_bytes_; }
  uint64_t value_bytes() const;          ///< of the values in the store, all alike
  size_t values() const;                 ///< their number
  std::vector<std::string> keys() const; ///< theirs

  /// Stores a new chain; it is in the store when this returns.
  void store();
  /// Leaves the chain only in the store.
  void chill();
  /// Brings the chain to host memory.
  void prefetch();
  /// Returns the number of chunks that arrived in the region.
  uint32_t load();
  /// Loads while a prefetch runs ahead, and returns the number of chunks that arrived in the region.
  uint32_t prefetch_and_load();
  /// Removes the chain.
  void forget();

 private:
  client::prefix what() const { return client::prefix::of_digests(chain_); }
  uint32_t found(uint32_t tiers);
  client::ticket<client::prefetch_result> begin_prefetch();

  far_daemon& in_;
  uint64_t object_bytes_;
  client::connection client_;
  client::space space_;
  client::region memory_;
  client::registered_region region_;
  std::vector<client::run> runs_;
  std::vector<digest> chain_;
  uint64_t seed_ = 1000;
};

/// Reads a chain from its store again and again, by a client of its own on a thread of its own.
class busy_reader {
 public:
  busy_reader(far_daemon& in, std::optional<int> processor);
  ~busy_reader();

  /// Nothing is read any more when it returns from `work(false)`.
  void work(bool on);

 private:
  void read(const std::stop_token& stop);

  far_chain chain_;
  std::mutex mutex_; ///< held while the chain is read
  std::atomic<bool> works_{false};
  std::jthread thread_;
};

} // namespace terrace::bench
