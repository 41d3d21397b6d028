// Requests by verb: how many ended how, and how long they took.
#pragma once

#include "base/error.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <span>

namespace terrace::metrics {

/// One for each trust group. Any thread.
class request_probe {
 public:
  static constexpr size_t verbs_max = 32;
  static constexpr size_t outcomes = 11; ///< the codes of errc

  /// `verb` is the frame's kind; kinds from `verbs_max` on are not counted, for nobody serves them.
  void started(size_t verb) noexcept;

  /// Exactly once for every `started`; `latency` is from the last byte of the frame to the hand-over of its
  /// answer.
  void finished(size_t verb, errc outcome, std::chrono::nanoseconds latency) noexcept;

  /// `names[verb]` labels the verb; verbs with an empty name, or none, are left out.
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
