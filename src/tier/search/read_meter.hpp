// Measures how fast a tier is read, by the bytes that arrive from it, and how many are still to be read.
//
// The actors that read from the device report to it. The speed is bytes over the time in which something was
// to be read: idle time does not count, waiting for other operations of the device does. Old measurements
// fade with newer ones and with time, so the speed follows a device that becomes slower or faster.
//
// A store behind a link also tells when the first bytes of an answer come. The time until then is its latency and
// does not count in the speed, nor do these bytes: they came in that time. Without that, a link with a long round trip
// seems slow after short reads, and long reads of a slow one seem fast.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace terrace {

/// The state of a tier's reads at one moment.
struct read_state {
  double bytes_per_s = 0;    ///< 0: nothing has arrived yet
  uint64_t queued_bytes = 0; ///< bytes to be read, waiting and in progress
  double idle_s = 0;         ///< seconds since something was last to be read
  double waits_s = 0;        ///< while something is to be read, seconds since something of it came
  double first_byte_s =
      0; ///< seconds until the first byte of a read comes, if the tier is idle; 0: none, or in the speed

  /// Seconds until `bytes` more have come, behind those to be read already. Precondition: the speed is known.
  double read_s(uint64_t bytes) const {
    return first_byte_s + static_cast<double>(queued_bytes + bytes) / bytes_per_s;
  }
};

/// Safe on any thread. Time is an argument; a time earlier than the last one counts as that.
class read_meter {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// A measurement counts half after this much has been measured since: bytes, seconds of reading, or idle seconds.
  static constexpr double half_bytes = 256.0 * (1 << 20), half_read_s = 1, half_idle_s = 10;
  /// The newest latency counts as this share of all.
  static constexpr double newest_share = 0.25;

  /// One of the readers of the tier has `after` bytes to read instead of `before`.
  void has_to_read(uint64_t before, uint64_t after, time_point now);
  /// The first `bytes` of an answer have come, or some bytes more. Only what comes first after the tier was idle counts.
  void answered(uint64_t bytes, time_point now);
  /// Bytes have been read. Call it before `has_to_read` reports that they are no longer to be read.
  void arrived(uint64_t bytes, time_point now);

  /// A read that should have arrived by now makes the speed lower before it arrives.
  read_state state(time_point now) const;

 private:
  double seconds_since_last(time_point now) const;
  void fade(double halves);

  struct measured { ///< as far as it has not faded
    double bytes = 0, seconds = 0;
  };

  mutable std::mutex lock_;
  uint64_t queued_ = 0;
  measured behind_first_;    ///< what arrived behind first bytes, or without
  measured first_;           ///< first bytes, and the time until they came
  double first_byte_s_ = -1; ///< -1: not measured
  uint64_t came_first_ = 0;  ///< bytes that came first, of reads that have not arrived
  bool waits_ = false;       ///< for the first byte since the queue began
  time_point last_{};        ///< time when something arrived, or the queue began or ended
};

} // namespace terrace
