// METRICS: owns the exposition scraped by Prometheus. Its server threads read probes, plain counters; no
// scrape sends a message or waits for an actor.
#pragma once

#include "actors/interfaces.hpp"
#include "memory/segmented_arena.hpp"
#include "metrics/exposition.hpp"
#include "metrics/samples.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace terrace {

// Gauges of host memory that the tier's allocator does not know.

/// Returns a source of the exposition; safe on any thread.
inline std::function<void(metrics::sample_sink&)> memory_gauges(std::shared_ptr<const segmented_arena> memory,
                                                                const metrics::labels& series) {
  return [memory = std::move(memory), series](metrics::sample_sink& sink) {
    sink.gauge("terrace_arena_bytes", "Host memory of the group, without segments being removed.", series,
               static_cast<double>(memory->size()));
    sink.gauge("terrace_arena_huge_page_bytes", "Host memory in pages of 2 MiB.", series,
               static_cast<double>(memory->huge_page_bytes()));
    sink.gauge("terrace_arena_leaving_bytes",
               "Memory of segments being removed that leases or clients still use.", series,
               static_cast<double>(memory->leaving_bytes()));
  };
}

} // namespace terrace

namespace terrace::actors {

struct metrics_state {
  const char* name = "metrics";
  std::shared_ptr<metrics::exposition> serving;
};

inline metrics_actor::behavior_type metrics_behavior(metrics_actor::stateful_pointer<metrics_state> self,
                                                     const std::shared_ptr<metrics::exposition>& serving) {
  self->state.serving = serving;
  return {
      [self](const add_source& more) { self->state.serving->add(more.source); },
  };
}

inline metrics_actor spawn_metrics(caf::actor_system& system, std::unique_ptr<metrics::exposition> serving) {
  return system.spawn(metrics_behavior, std::shared_ptr<metrics::exposition>(std::move(serving)));
}

} // namespace terrace::actors
