// The samples of a probe, independent of the exposition format.
#pragma once

#include "metrics/latency_histogram.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace terrace::metrics {

/// Names and values of labels. Values must come from bounded sets: configuration, enumerations, or
/// `space_table`.
using labels = std::vector<std::pair<std::string, std::string>>;

/// Returns at most 100 bytes of a name that a client chose, as `printable` shows it: a label must be valid UTF-8, or Prometheus
/// rejects the whole scrape.
std::string printable_label(std::string_view name);

/// Returns `base` with one more label.
inline labels with(labels base, std::string name, std::string_view value) {
  base.emplace_back(std::move(name), value);
  return base;
}

/// Receives samples. All samples of one name must have the same kind and help text. Names follow Prometheus:
/// base units, `_total` for counters, `_seconds`, `_bytes`, `_ratio`.
class sample_sink {
 public:
  virtual ~sample_sink() = default;
  virtual void counter(std::string_view name, std::string_view help, const labels& series, double value) = 0;
  virtual void gauge(std::string_view name, std::string_view help, const labels& series, double value) = 0;
  virtual void histogram(std::string_view name, std::string_view help, const labels& series,
                         const histogram_snapshot& value) = 0;
};

} // namespace terrace::metrics
