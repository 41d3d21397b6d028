// A message to the metrics actor.
#pragma once

#include "metrics/samples.hpp"

#include <functional>

namespace terrace {

/// Adds a source to be read at each scrape; `source` is thread-safe and lives as long as the metrics actor.
struct add_source {
  std::function<void(metrics::sample_sink&)> source;
};

} // namespace terrace
