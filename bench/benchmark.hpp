// The registry. To add a benchmark, write a function in a `*_bench.cpp` and name it in benchmarks.cpp.
#pragma once

#include "bench/harness.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace terrace::bench {

struct settings {
  std::string terraced; ///< path of the daemon's program
  std::string folder;   ///< folder for the files of daemons and limits; it lies on the disk to be measured
  int rounds = 5;       ///< at least 5
  uint64_t objects = 10'000'000; ///< number of objects for `recover` and `restart`
  std::string trace;             ///< trace for `hit_ratio`; empty: one is generated
};

/// A benchmark hands each figure to `report` as soon as it has it.
using reporter = std::function<void(const figure&)>;

struct benchmark {
  std::string_view name;
  std::string_view summary;
  void (*run)(const settings&, const reporter&);
};

std::span<const benchmark> benchmarks();

void lookup_latency(const settings&, const reporter&);
void lookup_leased(const settings&, const reporter&);
void lookup_inference(const settings&, const reporter&);
void lookup_disk(const settings&, const reporter&);
void lookup_busy(const settings&, const reporter&);
void lookup_tokens(const settings&, const reporter&);
void lookup_tokens_warm(const settings&, const reporter&);
void lookup_tokens_cold(const settings&, const reporter&);
void lookup_throughput(const settings&, const reporter&);
void scaling(const settings&, const reporter&);
void imbalance(const settings&, const reporter&);
void fairness(const settings&, const reporter&);
void lookup_under_store(const settings&, const reporter&);
void oversubscribed(const settings&, const reporter&);
void longest_turn(const settings&, const reporter&);
void host_load(const settings&, const reporter&);
void host_store(const settings&, const reporter&);
void first_touch(const settings&, const reporter&);
void disk_load(const settings&, const reporter&);
void disk_store(const settings&, const reporter&);
void prefetch_pipeline(const settings&, const reporter&);
void load_pipeline(const settings&, const reporter&);
void cancel_latency(const settings&, const reporter&);
void index_cost(const settings&, const reporter&);
void restart(const settings&, const reporter&);
void recover(const settings&, const reporter&);
void disk_mixed(const settings&, const reporter&);
void hit_ratio(const settings&, const reporter&);
void cpu_per_request(const settings&, const reporter&);
void idle_cpu(const settings&, const reporter&);
void policy_cost(const settings&, const reporter&);
void alloc_mixed(const settings&, const reporter&);
void session_turn(const settings&, const reporter&);
void fork_sessions(const settings&, const reporter&);
void sessions_many(const settings&, const reporter&);
void resp_get(const settings&, const reporter&);
void resp_set(const settings&, const reporter&);
void remote_get(const settings&, const reporter&);
void remote_put(const settings&, const reporter&);
void remote_cpu(const settings&, const reporter&);
void remote_compress(const settings&, const reporter&);
void remote_pipeline(const settings&, const reporter&);
void remote_probe(const settings&, const reporter&);
void remote_lookup(const settings&, const reporter&);
void remote_stopped(const settings&, const reporter&);
void remote_s3(const settings&, const reporter&);
void remote_slow_link(const settings&, const reporter&);
void remote_scale(const settings&, const reporter&);
void gpu_load(const settings&, const reporter&);
void gpu_store(const settings&, const reporter&);
void gpu_layer0(const settings&, const reporter&);
void gpu_pieces(const settings&, const reporter&);
void gpu_daemon(const settings&, const reporter&);
void gpu_calls(const settings&, const reporter&);
void device_overhead(const settings&, const reporter&);
void gpu_reference_engine(const settings&, const reporter&);
void ttft(const settings&, const reporter&);
void gemm_disturbance(const settings&, const reporter&);
void engine_ttft(const settings&, const reporter&);
void reference_engine(const settings&, const reporter&);
void teardown_latency(const settings&, const reporter&);

} // namespace terrace::bench
