// Schedules the operations of a device: several classes by urgency, without starvation.
//
//   io_scheduler shares{{.depth = 32}};
//   while (auto grant = shares.next(heads))   // heads: bytes of the first waiting operation of each class
//     ... start grant->bytes of that operation; later: shares.finished(grant->what, grant->bytes)
//
// The rules:
// - Classes that have waiting operations and none in flight get the next free slots, the most urgent first,
//   but a class that has been skipped 8 times before all others: no class starves.
// - Then the most urgent waiting class goes, as far as depth and bytes allow.
// - While a more urgent class is active, the classes below it keep a small share of its bytes in flight, in
//   small pieces. A device serves all submitted operations in parallel, so only operations not submitted keep
//   reads fast.
// - Alone, a class ramps up: each completed byte allows one more byte in flight, up to its limit. A reader
//   that returns soon after its last read meets few writes, whatever their backlog, and no clock is needed to
//   detect the end of reads.
//
// Pure bookkeeping, one thread. The window that grows with completions is TCP's slow start (RFC 5681, section
// 3.1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace terrace {

/// Most urgent first.
enum class io_class : uint8_t {
  load,     ///< a client is waiting for it
  prefetch, ///< a client will ask for it
  write,    ///< nothing waits for it, but it holds objects in host memory until it is done
  scrub,    ///< maintenance by the daemon
};
constexpr size_t io_classes = 4;
std::string_view to_string(io_class which);

struct io_limits {
  uint32_t depth = 32;                     ///< operations in flight, all classes
  uint64_t bytes_in_flight = 256ULL << 20; ///< total; a single larger operation runs alone
  uint64_t piece_bytes = 8ULL << 20;  ///< longer operations are split; a rest of up to an eighth is included
  uint64_t alone_bytes = 64ULL << 20; ///< maximum in flight of a class other than `load`
  uint64_t beside_bytes = 1ULL << 20; ///< a piece, and the minimum share, while a more urgent class is active
  uint64_t shared_bytes =
      32ULL << 20; ///< in flight of all trust groups together while several use the device
  /// Percent of the bytes in flight of more urgent classes.
  std::array<uint32_t, io_classes> beside_percent{100, 50, 20, 5};
};

/// What may be in flight besides `io_limits` (device_share.hpp). One operation always may.
struct io_room {
  uint64_t bytes = UINT64_MAX;
  uint32_t operations = UINT32_MAX;
  uint64_t piece_bytes = UINT64_MAX;
};

class io_scheduler {
 public:
  explicit io_scheduler(const io_limits& limits);

  struct grant {
    io_class priority = io_class::load;
    uint64_t bytes = 0;
  };
  /// `heads`: remaining bytes of the first operation of each class, 0 if none waits. The grant counts as in
  /// flight.
  std::optional<grant> next(const std::array<uint64_t, io_classes>& heads, const io_room& room = {});

  /// Call once per grant, with its class and bytes.
  void finished(io_class priority, uint64_t bytes);

  size_t in_flight() const { return operations_; }
  uint64_t bytes_in_flight() const { return bytes_; }
  uint64_t bytes_in_flight(io_class priority) const { return classes_[static_cast<size_t>(priority)].bytes; }

 private:
  struct of_class {
    uint32_t operations = 0;
    uint64_t bytes = 0;
    uint64_t window = 0;      ///< bytes it may have in flight while no more urgent class is active
    uint32_t passed_over = 0; ///< how often another class went while this one waited with nothing in flight
  };

  /// The piece that class `i` may start now; 0: none.
  uint64_t piece(size_t i, uint64_t head, bool beside, const io_room& room) const;
  uint64_t bytes_above(size_t i) const;

  io_limits limits_;
  std::array<of_class, io_classes> classes_;
  uint32_t operations_ = 0;
  uint64_t bytes_ = 0;
};

} // namespace terrace
