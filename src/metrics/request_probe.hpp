// Counts requests by verb: outcomes and latencies.
#pragma once

#include "base/error.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <span>
#include <string_view>

namespace terrace::metrics {

// Counts the commands of Redis clients, per trust group.

/// Safe on any thread.
class resp_probe {
 public:
  static constexpr size_t commands_max = 32;

  template <class Command>
  void called(Command command) noexcept {
    if (auto number = static_cast<size_t>(command); number < commands_max)
      commands_[number].add();
  }
  void failed() noexcept { errors_.add(); } ///< a command was answered with an error
  void guessed() noexcept { wrong_passwords_.add(); }
  void found(uint64_t bytes) noexcept {
    hits_.add();
    read_bytes_.add(bytes);
  }
  void missed() noexcept { misses_.add(); }
  void stored(uint64_t bytes) noexcept { stored_bytes_.add(bytes); }
  uint64_t hits() const noexcept { return hits_.value(); }
  uint64_t misses() const noexcept { return misses_.value(); }

  /// `names[command]` labels the command; the last name is for unknown commands.
  void collect(std::span<const std::string_view> names, const labels& series, sample_sink& sink) const;

 private:
  std::array<counter, commands_max> commands_;
  counter errors_, wrong_passwords_, hits_, misses_, read_bytes_, stored_bytes_;
};

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
  void collect(std::span<const std::string_view> names, const labels& series, sample_sink& sink) const;

 private:
  struct verb_counters {
    gauge in_flight;
    std::array<counter, outcomes> ended;
    latency_histogram latency;
  };
  std::array<verb_counters, verbs_max> verbs_;
};

} // namespace terrace::metrics
