// Counts the commands of Redis clients, per trust group.
#pragma once

#include "metrics/samples.hpp"

#include <array>
#include <span>
#include <string_view>

namespace terrace::metrics {

/// Safe on any thread.
class resp_probe {
 public:
  static constexpr size_t commands_max = 32;

  template <class Command>
  void called(Command what) noexcept {
    if (auto number = static_cast<size_t>(what); number < commands_max)
      commands_[number].add();
  }
  void failed() noexcept { errors_.add(); } ///< a command was answered with an error
  void found(uint64_t bytes) noexcept {
    hits_.add();
    read_bytes_.add(bytes);
  }
  void missed() noexcept { misses_.add(); }
  void stored(uint64_t bytes) noexcept { stored_bytes_.add(bytes); }
  uint64_t hits() const noexcept { return hits_.value(); }
  uint64_t misses() const noexcept { return misses_.value(); }

  /// `names[command]` labels the command; the last name is for unknown commands.
  void collect(std::span<const std::string_view> names, const labels& of, sample_sink& sink) const;

 private:
  std::array<counter, commands_max> commands_;
  counter errors_, hits_, misses_, read_bytes_, stored_bytes_;
};

} // namespace terrace::metrics
