// The number of open accesses per class, by age.
#pragma once

#include "policy/age_bins.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Counts by the time of the access. Recent accesses have slots of 2^7 ticks (an eighth of a second);
/// whenever 32 slots are full, the next ones are twice as wide. The slot of an access is a function of its
/// time and the present, so an access can be removed without having been kept. The error of an age is below
/// 1/32 of it. Accesses older than 78 hours are dropped. A class takes 2 KiB from its first access on.
class open_ages {
 public:
  explicit open_ages(size_t classes) : columns_(classes) {}

  /// Times in ticks; they never go back.
  void advance(uint64_t now) { now_ = now >> base_shift; }
  void add(size_t of_class, uint64_t time, int change);

  /// Adds the open accesses of a class to `into`, each to the bin of its age.
  void count(size_t of_class, std::array<double, age_bins::count>& into) const;

  size_t bytes() const;

 private:
  static constexpr int base_shift = 7, levels = 17;
  static constexpr uint64_t slots = 32;
  using counts = std::array<int32_t, levels * slots>;
  struct column {
    /// The time for which its slots are right: a class that nobody asks about costs nothing.
    uint64_t now = 0;
    counts of{};
  };

  static size_t slot(int level, uint64_t number) {
    return static_cast<size_t>(level) * slots + number % slots;
  }
  /// Updates the levels below `top`; the present slot of all higher levels is unchanged.
  static void advance(counts& of, uint64_t before, uint64_t now, int top);
  void bring_up_to_date(column& of) const;

  uint64_t now_ = 0; ///< in units of the base slot
  std::vector<std::unique_ptr<column>> columns_;
};

} // namespace terrace
