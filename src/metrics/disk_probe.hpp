// The device under a disk tier.
#pragma once

#include "metrics/samples.hpp"

#include <array>

namespace terrace::metrics {

enum class disk_operation : uint8_t { read, write, sync };
constexpr size_t disk_operations = 3;
std::string_view to_string(disk_operation operation);

/// One for each extent file. Any thread.
class disk_probe {
 public:
  void started(disk_operation operation) noexcept;

  /// Exactly once for every `started`. `bytes` is 0 for an operation that failed; a short read is a failure.
  void finished(disk_operation operation, uint64_t bytes, bool failed,
                std::chrono::nanoseconds latency) noexcept;

  void collect(const labels& of, sample_sink& sink) const;

 private:
  struct operation_counters {
    gauge in_flight;
    counter bytes, errors;
    latency_histogram latency;
  };
  std::array<operation_counters, disk_operations> operations_;
};

} // namespace terrace::metrics
