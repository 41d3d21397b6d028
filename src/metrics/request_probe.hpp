// Counts requests by verb: outcomes and latencies.
#pragma once

#include "base/error.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <span>

namespace terrace::metrics {

/// Each trust group has one. Safe on any thread.
class request_probe {
 public:
  static constexpr size_t verbs_max = 64;
  static constexpr size_t outcomes = 11; ///< the codes of errc

  /// `verb` is the frame's kind; kinds from `verbs_max` on are not counted, because no verb has them.
  void started(size_t verb) noexcept;

  /// Call once per `started`; `latency` is measured from the last byte of the frame until its answer is handed over.
  void finished(size_t verb, errc outcome, std::chrono::nanoseconds latency) noexcept;

  /// `names[verb]` labels the verb; verbs with no name or an empty one are omitted.
  void collect(std::span<const std::string_view> names, const labels& of, sample_sink& sink) const;

 private:
  struct verb_counters {
    gauge in_flight;
    std::array<counter, outcomes> ended;
    latency_histogram latency;
  };
  std::array<verb_counters, verbs_max> verbs_;
};

} // namespace terrace::metrics
