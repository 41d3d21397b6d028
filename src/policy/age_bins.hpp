// Age bins of increasing width: the first is under a second, each next 1.35 times as wide, up to 34 hours.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace terrace {

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
