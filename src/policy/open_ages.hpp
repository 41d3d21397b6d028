// The number of open accesses per class, by age.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

// Age bins of increasing width: the first is under a second, each next 1.35 times as wide, up to 34 hours.

/// Ages are in ticks of `access_clock` (2^20 ns).
class age_bins {
 public:
  static constexpr int count = 40;
  static constexpr double ticks_per_second = 1e9 / (1 << 20);

  /// Returns the lowest age of a bin; for bin `count`, the upper end of the last one.
  static constexpr uint32_t edge(int bin) { return edges[static_cast<size_t>(bin)]; }
  static constexpr double width_seconds(int bin) { return (edge(bin + 1) - edge(bin)) / ticks_per_second; }

  static constexpr int of(uint64_t age) {
    if (age >= edge(count - 1))
      return count - 1;
    int bin = first[slot(static_cast<uint32_t>(age))];
    while (age >= edge(bin + 1))
      ++bin;
    return bin;
  }

 private:
  /// Index by the power of two and the next two bits: at most two edges fall into one slot.
  static constexpr size_t slot(uint32_t age) {
    int width = std::bit_width(age);
    return width < 4 ? 0 : static_cast<size_t>(width) * 4 + (age >> (width - 3) & 3);
  }

  static constexpr std::array<uint32_t, count + 1> edges = [] {
    std::array<uint32_t, count + 1> all{};
    double at = ticks_per_second;
    for (size_t i = 1; i <= count; ++i, at *= 1.35)
      all[i] = static_cast<uint32_t>(at) + 1;
    return all;
  }();

  static constexpr std::array<uint8_t, 132> first = [] {
    std::array<uint8_t, 132> all{};
    for (uint32_t width = 4; width <= 32; ++width)
      for (uint32_t next = 0; next < 4; ++next) {
        uint64_t least = (uint64_t{4} + next) << (width - 3);
        uint8_t bin = 0;
        while (bin < count - 1 && least >= edges[bin + 1U])
          ++bin;
        all[width * 4 + next] = bin;
      }
    return all;
  }();
};

} // namespace terrace

namespace terrace::foresight {

// The value of keeping an entry until it becomes known which of several outcomes it has.

/// One of the outcomes that a use may turn out to have.
struct outcome {
  double weight = 0; ///< how often uses had it
  const std::array<double, age_bins::count>* chance =
      nullptr; ///< the probability of a return in each bin, given that the bin was reached
};

/// The time until the outcome becomes known.
struct delay {
  double seconds = 0;
  size_t bin = 0; ///< the bin of that age
};

/// Returns the Gittins index of a use that is kept until its outcome is known, and afterwards only as long as keeping
/// it pays. This is the highest price per second at which keeping it still pays, if all outcomes pay for the delay and
/// afterwards only those pay that are worth keeping. The index of the mixture (`least`, the smallest result) would keep
/// either all outcomes or none. It is found by Dinkelbach's iteration (1967), to one percent.
double value(std::span<const outcome> outcomes, delay until_known, double least);

} // namespace terrace::foresight

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
    counts ages{};
  };

  static size_t slot(int level, uint64_t number) {
    return static_cast<size_t>(level) * slots + number % slots;
  }
  /// Updates the levels below `top`; the present slot of all higher levels is unchanged.
  static void advance(counts& ages, uint64_t before, uint64_t now, int top);
  void bring_up_to_date(column& ages) const;

  uint64_t now_ = 0; ///< in units of the base slot
  std::vector<std::unique_ptr<column>> columns_;
};

} // namespace terrace
