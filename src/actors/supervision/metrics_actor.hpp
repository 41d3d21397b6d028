// METRICS: owns the exposition scraped by Prometheus. Its server threads read probes, plain counters; no
// scrape sends a message or waits for an actor.
#pragma once

#include "actors/interfaces.hpp"
#include "metrics/exposition.hpp"

#include <memory>

namespace terrace::actors {

metrics_actor spawn_metrics(caf::actor_system& system, std::unique_ptr<metrics::exposition> serving);

} // namespace terrace::actors
