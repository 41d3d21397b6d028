#include "bench/benchmark.hpp"

namespace terrace::bench {

std::span<const benchmark> benchmarks() {
  static constexpr benchmark all[] = {
      {"lookup_latency", "lookup of 128 digests, one client, over the socket", lookup_latency},
      {"lookup_tokens", "lookup of 131,072 unknown tokens, hashed by the daemon", lookup_tokens},
      {"lookup_throughput", "lookups of 128 digests on 64 connections, one worker", lookup_throughput},
      {"imbalance", "a light client beside heavy ones on its worker", imbalance},
      {"fairness", "eight clients, one of them greedy, and a trust group beside a greedy one", fairness},
      {"lookup_under_store", "lookups of 128 digests while four clients store", lookup_under_store},
      {"oversubscribed", "bytes loaded when clients want four times the memory, and when all fits",
       oversubscribed},
      {"longest_turn", "another client's p99 beside the most expensive legal requests, one worker",
       longest_turn},
      {"host_load", "4 MiB objects out of host memory, mapped and isolated", host_load},
      {"host_store", "4 MiB objects from a sealed region into host memory", host_store},
      {"disk_load", "objects of 256 KiB to 16 MiB from disk, depth 32", disk_load},
      {"disk_store", "objects of 256 KiB to 16 MiB to disk, first pass and steady state", disk_store},
      {"disk_mixed", "objects from disk beside a burst of stores, and alone", disk_mixed},
      {"prefetch_pipeline", "256 MiB from disk to a region: a prefetch with a load behind it",
       prefetch_pipeline},
      {"load_pipeline", "256 MiB from disk to a region by one load", load_pipeline},
      {"cancel_latency", "p99 from the cancellation of a prefetch to its answer", cancel_latency},
      {"index_cost", "memory and lookups of an index of ten million chunks", index_cost},
      {"recover", "ten million objects found again after a restart, beside reading the same bytes", recover},
      {"hit_ratio", "what each eviction policy hits on a trace (--trace), beside Belady", hit_ratio},
      {"policy_cost", "what each eviction policy costs an access, a million chunks resident", policy_cost},
      {"idle_cpu", "what a daemon with 100 idle connections uses", idle_cpu},
      {"alloc_mixed", "allocators: three sizes of object, 80 % full, random frees", alloc_mixed},
      {"session_turn", "a turn of 512 new tokens after 131,072, beside a lookup of 128 digests",
       session_turn},
      {"fork", "forks of a session of 131,072 tokens, beside sessions that are opened", fork_sessions},
      {"sessions_many", "memory of 100,000 sessions, bytes each", sessions_many},
      {"resp_get", "values of 64 B to 4 MiB by the door for Redis clients, beside redis-server", resp_get},
      {"resp_set", "the same, stored", resp_set},
      {"teardown_latency", "lookups while 2 GiB of a client that has ended are released", teardown_latency},
  };
  return all;
}

} // namespace terrace::bench
