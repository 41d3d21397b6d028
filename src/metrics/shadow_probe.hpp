// The hits that the shadow policies of a trust group would have had.
#pragma once

#include "metrics/samples.hpp"

#include <deque>
#include <string>

namespace terrace::metrics {

/// Add lines before the probe is served; afterwards it is safe on any thread.
class shadow_probe {
 public:
  /// Totals of one policy at one capacity since the start.
  struct totals {
    uint64_t asked = 0, hits = 0, evicted = 0;
    uint64_t used_bytes = 0, bookkeeping_bytes = 0;
  };

  void add_line(std::string policy, uint64_t capacity_bytes) {
    line& added = lines_.emplace_back();
    added.policy = std::move(policy);
    added.capacity = std::to_string(capacity_bytes);
  }
  void set(size_t line, const totals& now) noexcept;
  void skipped(uint64_t requests) noexcept { skipped_.set(requests); }

  void collect(const labels& of, sample_sink& sink) const;

 private:
  struct line {
    std::string policy, capacity;
    gauge asked, hits, evicted, used, bookkeeping;
  };
  std::deque<line> lines_;
  gauge skipped_;
};

} // namespace terrace::metrics
