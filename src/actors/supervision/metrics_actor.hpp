// METRICS: owns the exposition scraped by Prometheus. Its server threads read probes, plain counters; no
// scrape sends a message or waits for an actor.
#pragma once

#include "metrics/exposition.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include <functional>
#include <memory>

namespace terrace::actors {

/// Adds a source to be read at each scrape; `source` is thread-safe and lives as long as the metrics actor.
struct add_source {
  std::function<void(metrics::sample_sink&)> source;
};

caf::actor spawn_metrics(caf::actor_system& system, std::unique_ptr<metrics::exposition> serving);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::add_source)
