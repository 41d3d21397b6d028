// Virtual time and the order of events. One thread; no clock. Time jumps to the next event, and the seed decides which of
// several events at one time comes first.
//
//   scheduler events{seed};
//   events.after(std::chrono::milliseconds{3}, [&] { ... });
//   while (events.step()) {}
//
// What happened is mixed into a hash: two runs with the same hash did the same.
#pragma once

#include "random.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <tuple>

namespace terrace::simulation {

class scheduler {
 public:
  using event_id = uint64_t; ///< 0 is never used

  explicit scheduler(uint64_t seed) : random_(seed) {}
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  /// Time since the simulation began.
  std::chrono::nanoseconds now() const { return now_; }

  event_id after(std::chrono::nanoseconds delay, std::function<void()> run);
  /// No effect if the event has run.
  void cancel(event_id which);

  /// Advances time to the next event and runs it. False: there is none.
  bool step();

  /// Mixes numbers into the hash, with the time.
  void note(std::initializer_list<uint64_t> what);
  uint64_t trace_hash() const { return hash_; }
  uint64_t steps() const { return steps_; }

 private:
  using key = std::tuple<std::chrono::nanoseconds, uint64_t, event_id>; ///< time, draw, number

  void mix(uint64_t word);

  seeded_random random_;
  std::chrono::nanoseconds now_{};
  std::map<key, std::function<void()>> events_;
  std::map<event_id, key> keys_;
  event_id last_ = 0;
  uint64_t steps_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325;
};

} // namespace terrace::simulation
