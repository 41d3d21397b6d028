// How much an endpoint of a remote store is asked for: a window of bytes in flight, one of requests, the silence after which it has failed, when a
// request that it refuses for the moment is sent again, and a breaker that keeps requests from it when it fails. Pure, one thread; time and random numbers are passed
// in, so that many daemons do not act at once and tests decide.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace terrace::remote {

/// Bytes in flight on one connection. The window doubles with each window that succeeds, up to the largest.
class byte_window {
 public:
  struct options {
    uint64_t smallest_bytes = 4 << 20;
    uint64_t largest_bytes = 64 << 20;
  };

  byte_window() : byte_window(options{}) {}
  explicit byte_window(const options& o) : options_(o), size_(o.smallest_bytes) {}

  /// True if `bytes` more may be sent or asked for. A single request larger than the window is alone in it.
  bool has_room(uint64_t bytes) const { return in_flight_ == 0 || in_flight_ + bytes <= size_; }
  void began(uint64_t bytes) { in_flight_ += bytes; }
  void succeeded(uint64_t bytes);
  /// The request ended without telling anything about the connection: it was cancelled, or refused.
  void gave_up(uint64_t bytes) { end(bytes); }
  /// So many bytes keep the connection busy; more would only wait at the server, which takes memory there and time for it. It
  /// does not become smaller than the smallest window.
  void keep_within(uint64_t bytes);
  /// A new connection begins with the smallest window; nothing is in flight.
  void restart();

  uint64_t size() const { return size_; }
  uint64_t in_flight() const { return in_flight_; }

 private:
  void end(uint64_t bytes);

  options options_;
  uint64_t size_;
  uint64_t bound_ = options_.largest_bytes;
  uint64_t in_flight_ = 0;
};

/// Requests at a time to a store that answers several at once, and says when these are too many.
class request_window {
 public:
  explicit request_window(size_t most) : most_(most), size_(most) {}

  bool has_room(size_t in_flight) const { return in_flight < size_; }
  /// One more is asked for at a time, once as many as that have been answered.
  void succeeded();
  /// The store asks for fewer: half as many.
  void too_many();

  size_t size() const { return size_; }
  /// The store has not asked for fewer, or has answered many since.
  bool is_largest() const { return size_ == most_; }

 private:
  size_t most_, size_;
  size_t answered_ = 0; ///< since the size has changed
};

/// How long a request waits before it is sent again that the store has refused for the moment, as too many or for an error of its own:
/// a random part of a bound (full jitter) that is four times as long the second time. `tried`: it was sent again so often; `wanted`: the
/// store asks for so much (Retry-After), to which the random part is added; `random`: any number. nullopt: it is not sent again.
std::optional<std::chrono::milliseconds> pause_after_refusal(uint32_t tried, std::chrono::seconds wanted,
                                                             uint64_t random);

/// Tells when an endpoint of which something is asked has said nothing for too long. A reply that does not end counts as
/// silence, unless enough of it comes within that time: whoever waits would otherwise wait as long as the endpoint likes.
class silence {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr uint64_t bytes_that_count = 64 << 10;

  /// What follows has `limit`; nothing is awaited yet.
  void begin(std::chrono::nanoseconds limit);
  /// Whether something is asked of the endpoint now. Call it after every change.
  void awaits(bool something, time_point now);
  /// The endpoint has done something of what was asked.
  void heard(time_point now);
  /// It has sent so much of a reply that has not ended.
  void received(uint64_t bytes, time_point now);

  /// nullopt: nothing is awaited.
  std::optional<time_point> ends_at() const;

 private:
  std::chrono::nanoseconds limit_{0};
  std::optional<time_point> since_;
  uint64_t bytes_ = 0; ///< received since then
};

/// Keeps requests from an endpoint that fails, and always comes back:
///
///   closed --(failures in a row, or too many of the last ones)--> open
///   open --(the pause is over: `begin_trial`)--> half open
///   half open --(the trial succeeded)--> closed, or --(it failed)--> open, for up to twice as long, for ever
///
/// The pauses end early enough that an endpoint which is there again is used soon. The first one may be quick, for a connection that was
/// lost without a reason: what was asked over it can be asked again over another one. They become longer for one that answers but
/// does not want us, or that fails again soon after each trial: it is there, and asking again costs it work, or us time.
class breaker {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class state : uint8_t { closed, open, half_open };
  enum class trial : uint8_t { no_answer, refused };

  struct options {
    uint32_t failures_in_a_row = 5;
    uint32_t failures_of_last = 10;           ///< of the last 20 results
    std::chrono::milliseconds quick_pause{0}; ///< at most, before the first trial; 0: there is none
    std::chrono::milliseconds first_pause{500};
    std::chrono::milliseconds longest_pause{2'000};
    std::chrono::milliseconds longest_pause_refused{30'000};
    std::chrono::milliseconds soon{10'000}; ///< a failure so soon after a trial makes the pause longer
  };
  static constexpr uint32_t results_kept = 20;

  breaker() : breaker(options{}) {}
  explicit breaker(const options& o) : options_(o) {}

  /// Results of ordinary requests. Results that arrive while the breaker is not closed are ignored: they are of
  /// requests that began before. `random` is any number; the pause is between half and all of its length, a quick one
  /// between nothing and all.
  void succeeded();
  /// True if this opened the breaker.
  bool failed(time_point now, uint64_t random);

  /// Precondition: open, and `retry_at` has passed.
  void begin_trial();
  /// Precondition: half open.
  void trial_succeeded(time_point now);
  void trial_failed(trial how, time_point now, uint64_t random);

  state now() const { return state_; }
  time_point retry_at() const { return retry_at_; } ///< while open
  /// The pause, or the trial behind it, is the quick one.
  bool is_quick() const { return quick_; }

 private:
  void open(time_point now, uint64_t random);
  void note(bool failure);

  options options_;
  state state_ = state::closed;
  uint32_t in_a_row_ = 0;
  uint32_t results_ = 0; ///< the last ones, one bit each: 1 is a failure
  std::chrono::milliseconds pause_{0};
  bool quick_ = false;
  time_point retry_at_{};
  std::optional<time_point> closed_at_; ///< by the last trial
};

} // namespace terrace::remote
