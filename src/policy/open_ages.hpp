// How many uses of each class still wait for the next one, by age.
#pragma once

#include "policy/age_bins.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Counts by the time of the use, in slots of 2^7 ticks (an eighth of a second) for the young and twice as wide whenever
/// 32 slots are full: a use's slot is a function of its time and the present, so that a use is taken out again without
/// having been kept. The error of an age is below a thirty-second of it. Uses of more than 78 hours ago are let go. A class
/// takes 2 KiB from its first use on.
class open_ages {
 public:
  explicit open_ages(size_t classes) : columns_(classes) {}

  /// Times in ticks; they never go back.
  void advance(uint64_t now);
  void add(size_t of_class, uint64_t time, int change);

  /// Adds the uses to `into[bin]`, each to the bin that its age falls in.
  void count(size_t of_class, std::array<double, age_bins::count>& into) const;

  size_t bytes() const;

 private:
  static constexpr int base_shift = 7, levels = 17;
  static constexpr uint64_t slots = 32;
  using column = std::array<int32_t, levels * slots>;

  static size_t slot(int level, uint64_t number) {
    return static_cast<size_t>(level) * slots + number % slots;
  }
  /// In the levels below `top`, which is above all whose present slot is another one.
  static void advance(column& of, uint64_t before, uint64_t now, int top);

  uint64_t now_ = 0; ///< in units of the base slot
  std::vector<std::unique_ptr<column>> columns_;
};

} // namespace terrace
