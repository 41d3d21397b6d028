// Who goes next to a device, and with how much: several classes of operations, the more urgent first, and none starved.
//
//   io_scheduler shares{{.depth = 32}};
//   while (auto grant = shares.next(heads))   // heads: bytes of the first waiting operation of each class
//     ... start grant->bytes of that operation; later: shares.finished(grant->what, grant->bytes)
//
// The rules:
// - Classes that have something waiting and nothing in flight get the next free places, the most urgent first, but the
//   one that has been passed over 8 times before all others: nobody starves.
// - Then the most urgent class that waits, as far as depth and bytes go.
// - While a more urgent class is at work, the ones below it keep a small share of its bytes in flight and go in small
//   pieces: a device serves what it has been given side by side, so what it has not been given is what keeps reads fast.
// - Alone, a class finds its way up: each completed byte is a byte more that it may have in flight, until its limit. A
//   reader who comes again soon after its last read meets few writes, whatever their backlog, and no clock is needed to
//   tell that reads have ended.
//
// Pure bookkeeping, one thread. The window that grows with completions is TCP's slow start (RFC 5681, section 3.1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace terrace {

/// Most urgent first.
enum class io_class : uint8_t {
  load,     ///< a client waits for it
  prefetch, ///< a client will ask for it
  write,    ///< nobody waits, but it keeps objects in host memory until it is done
  scrub,    ///< the daemon looks after what it has
};
constexpr size_t io_classes = 4;
std::string_view to_string(io_class which);

struct io_limits {
  uint32_t depth = 32;                     ///< operations in flight, all classes
  uint64_t bytes_in_flight = 256ULL << 20; ///< of them; a single larger operation goes alone
  uint64_t piece_bytes = 8ULL << 20;       ///< longer operations are cut; a rest of an eighth goes along
  uint64_t alone_bytes = 64ULL << 20;      ///< what a class other than `load` has in flight at most
  uint64_t beside_bytes = 1ULL << 20;      ///< a piece, and the least share, beside a more urgent class
  /// Of the bytes that more urgent classes have in flight.
  std::array<uint32_t, io_classes> beside_percent{100, 50, 20, 5};
};

class io_scheduler {
 public:
  explicit io_scheduler(const io_limits& limits);

  struct grant {
    io_class what = io_class::load;
    uint64_t bytes = 0;
  };
  /// `heads`: what is left of the first operation of each class, 0 where none waits. The grant counts as in flight.
  std::optional<grant> next(const std::array<uint64_t, io_classes>& heads);

  /// Once for each grant, with its class and bytes.
  void finished(io_class what, uint64_t bytes);

  size_t in_flight() const { return operations_; }
  uint64_t bytes_in_flight() const { return bytes_; }
  uint64_t bytes_in_flight(io_class what) const { return classes_[static_cast<size_t>(what)].bytes; }

 private:
  struct of_class {
    uint32_t operations = 0;
    uint64_t bytes = 0;
    uint64_t window = 0;      ///< bytes that it may have in flight while nobody is above it
    uint32_t passed_over = 0; ///< times that another went while this waited with nothing in flight
  };

  /// The piece that class `i` may start now; 0: none.
  uint64_t piece(size_t i, uint64_t head, bool beside) const;
  uint64_t bytes_above(size_t i) const;

  io_limits limits_;
  std::array<of_class, io_classes> classes_;
  uint32_t operations_ = 0;
  uint64_t bytes_ = 0;
};

} // namespace terrace
