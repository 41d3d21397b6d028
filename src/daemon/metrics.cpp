#include "daemon/metrics.hpp"

#include "actors/connection/verbs.hpp"
#include "actors/supervision/group_plan.hpp"
#include "index/digest_memo.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

namespace terrace {

namespace {

std::vector<std::string_view> verb_names() {
  std::vector<std::string_view> names;
  for (const actors::verb& verb : actors::all_verbs()) {
    auto number = static_cast<size_t>(verb.kind);
    if (names.size() <= number)
      names.resize(number + 1);
    names[number] = verb.name;
  }
  return names;
}

/// Exposes the measurements by which reading a tier competes with computing.
void expose_reads(metrics::exposition& exposition, const std::shared_ptr<const read_meter>& meter,
                  const metrics::labels& tier) {
  exposition.add([meter, tier](metrics::sample_sink& sink) {
    const read_state reads = meter->state(std::chrono::steady_clock::now());
    sink.gauge("terrace_tier_read_bytes_per_second", "Measured speed at which the tier is read; 0 before.",
               tier, reads.bytes_per_s);
    sink.gauge("terrace_tier_first_byte_seconds",
               "Measured time until the first byte of a read comes; 0: it is part of the speed.", tier,
               reads.first_byte_s);
    sink.gauge("terrace_tier_queued_read_bytes", "Bytes to be read from the tier, waiting and under way.",
               tier, static_cast<double>(reads.queued_bytes));
  });
}

/// Adds a line for each quota of the configuration; it sums up tenants by rule.
void expose_tenants(metrics::exposition& exposition, const std::shared_ptr<const tenant_states>& board,
                    const metrics::labels& tier) {
  exposition.add([board, tier](metrics::sample_sink& sink) {
    for (const auto& [name, shown] : board->lines()) {
      auto series = metrics::with(tier, "quota", name);
      auto gauge = [&](const char* metric, const char* help, const std::atomic<uint64_t>& value) {
        sink.gauge(metric, help, series, static_cast<double>(value.load()));
      };
      gauge("terrace_tenant_used_bytes", "Bytes of the tenants of a quota in the tier.", shown->used_bytes);
      if (shown->max_bytes != UINT64_MAX)
        gauge("terrace_tenant_max_bytes", "Bound of a tenant of the quota.", shown->max_bytes);
      gauge("terrace_tenant_guaranteed_bytes",
            "Share that eviction for others leaves to a tenant of the quota.", shown->guaranteed_bytes);
      gauge("terrace_tenant_waiting_requests", "Requests that wait because their tenant is at its bound.",
            shown->waiting);
      sink.counter("terrace_tenant_refused_total", "Requests that were refused because of the quota.", series,
                   static_cast<double>(shown->refused.load()));
    }
  });
}

void expose_memos(metrics::exposition& exposition, const memo_pool_ptr& memos, const metrics::labels& group) {
  exposition.add([memos, group](metrics::sample_sink& sink) {
    memo_pool::counts now = memos->now();
    auto chunks = [&](const char* name, const char* help, uint64_t value) {
      sink.counter(name, help, group, static_cast<double>(value));
    };
    chunks("terrace_memo_known_chunks_total",
           "Chunks of tokens whose digest was known, and which were not hashed.", now.known);
    chunks("terrace_memo_hashed_chunks_total", "Chunks of tokens that were hashed.", now.hashed);
    sink.gauge("terrace_memo_bytes", "Memory of known tokens.", group, static_cast<double>(now.bytes));
    sink.gauge("terrace_memo_bound_bytes", "Bound of terrace_memo_bytes.", group,
               static_cast<double>(memos->bytes_max()));
  });
}

/// Collects the turns of all workers together, by kind of actor.
void collect_turns(const runtime::workers& workers, metrics::sample_sink& sink) {
  struct sum {
    metrics::histogram_snapshot turns{runtime::turn_times::bounds_ns, 1e9,
                                      std::vector<uint64_t>(runtime::turn_times::bounds_ns.size() + 1), 0};
    uint64_t longest_ns = 0;
  };
  std::map<std::string_view, sum> kinds;
  for (size_t i = 0; i < workers.size(); ++i)
    for (const auto& kind : workers.turns(i).kinds()) {
      const char* name = kind.name.load(std::memory_order_acquire);
      if (name == nullptr)
        continue;
      sum& all = kinds[name];
      for (size_t bucket = 0; bucket < kind.turns.size(); ++bucket)
        all.turns.counts[bucket] += kind.turns[bucket].get();
      all.turns.sum += kind.sum_ns.get();
      all.longest_ns = std::max(all.longest_ns, kind.longest_ns.get());
    }
  for (const auto& [name, all] : kinds) {
    metrics::labels series{{"actor", std::string(name)}};
    sink.histogram(
        "terrace_turn_seconds",
        "Time from the beginning to the end of an actor's turn, during which its worker does nothing else.",
        series, all.turns);
    sink.gauge("terrace_turn_longest_seconds", "The longest turn since the daemon started.", series,
               static_cast<double>(all.longest_ns) * 1e-9);
  }
}

} // namespace

void expose_group(metrics::exposition& exposition, const group_plan& plan, const group_probes& probes,
                  const region_budget_ptr& regions, bool redis) {
  metrics::labels group{{"group", plan.name}};
  exposition.add([group, regions](metrics::sample_sink& sink) {
    sink.gauge("terrace_region_bytes", "Bytes of registered regions, until they are unmapped.", group,
               static_cast<double>(regions->bytes()));
    sink.gauge("terrace_region_bound_bytes", "Bound of terrace_region_bytes.", group,
               static_cast<double>(regions->bytes_max()));
  });
  if (plan.memos)
    expose_memos(exposition, plan.memos, group);
  exposition.add(probes.host, metrics::with(group, "tier", "host"));
  expose_tenants(exposition, probes.host_tenants, metrics::with(group, "tier", "host"));
  if (plan.gpu)
    exposition.add(probes.gpu_tier, metrics::with(group, "tier", "gpu"));
  for (size_t i = 0; i < plan.remotes.size(); ++i) {
    const remote_probes& remote = probes.remotes.at(i);
    auto tier = metrics::with(group, "tier", to_string(plan.remotes[i].tier.kind));
    exposition.add(remote.tier, tier);
    exposition.add(remote.store, tier);
    expose_reads(exposition, remote.meter, tier);
  }
  if (plan.disk) {
    auto disk = metrics::with(group, "tier", "disk");
    exposition.add(probes.disk_tier, disk);
    expose_tenants(exposition, probes.disk_tenants, disk);
    expose_reads(exposition, probes.disk_meter, disk);
    for (size_t i = 0; i < probes.paths.size(); ++i) {
      auto directory = std::filesystem::path(plan.disk_files[i]).parent_path().string();
      auto path = metrics::with(group, "path", directory);
      exposition.add(probes.paths[i].disk, path);
      exposition.add(probes.paths[i].journal, path);
    }
  }
  if (!plan.shadows.empty())
    exposition.add(probes.shadow, group);
  exposition.add(probes.clients, group);
  if (redis)
    exposition.add([probe = probes.resp, group](metrics::sample_sink& sink) {
      probe->collect(option_values::redis_commands(), group, sink);
    });
  exposition.add(std::shared_ptr<const metrics::request_probe>(probes.requests), verb_names(), group);
}

void expose_workers(metrics::exposition& exposition, const runtime::workers& workers) {
  exposition.add([workers](metrics::sample_sink& sink) {
    collect_turns(workers, sink);
    for (size_t i = 0; i < workers.size(); ++i) {
      const runtime::worker_counters& counters = workers.counters(i);
      metrics::labels label{{"worker", i < workers.serving()
                                           ? std::to_string(i)
                                           : "transfer-" + std::to_string(i - workers.serving())}};
      auto count = [&](const char* name, const char* help, const runtime::plain_counter& value,
                       double unit = 1) {
        sink.counter(name, help, label, static_cast<double>(value.get()) * unit);
      };
      count("terrace_worker_jobs_total", "Executed turns of actors.", counters.jobs);
      count("terrace_worker_busy_seconds_total", "Time spent on actors and completions, not asleep.",
            counters.busy_ns, 1e-9);
      count("terrace_worker_completions_total", "I/O operations that completed on the worker's ring.",
            counters.completions);
      count("terrace_worker_wakeups_total", "Number of times the worker woke up.", counters.wake_ups);
      count("terrace_worker_polls_total", "Number of times the worker polled before it slept.",
            counters.polls);
      count("terrace_worker_polls_paid_total", "Number of times it found something.", counters.polls_paid);
      count("terrace_worker_polling_seconds_total", "Time spent polling.", counters.polling_ns, 1e-9);
      count("terrace_worker_pushed_jobs_total", "Jobs handed to a sleeping worker.", counters.pushed_jobs);
      sink.gauge("terrace_worker_queued_jobs", "Actors ready to run on the worker.", label,
                 static_cast<double>(counters.queued.get()));
      sink.gauge("terrace_worker_operations_in_flight", "I/O operations in the worker's ring.", label,
                 static_cast<double>(counters.in_flight.get()));
      sink.gauge("terrace_worker_sleeping", "1 while the worker sleeps in its ring, 0 otherwise.", label,
                 workers.asleep(i) ? 1 : 0);
    }
  });
}

} // namespace terrace
