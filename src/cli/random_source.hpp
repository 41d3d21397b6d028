// Random numbers that are equal on every machine: std's engines are portable, its distributions are not.
#pragma once

#include "base/digest.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::cli {

// The bytes that an object must contain, as a function of its digest.

/// Word i of the content is a mix of (XXH3 of the digest) + (i + 1) * step, little-endian; the last word is
/// truncated. A byte therefore depends on the digest and on its position, so that both bytes of another
/// object and shifted bytes are detected. Several GB/s per thread, without storing what was written.
void fill_content(std::span<std::byte> bytes, const digest& key);

/// Counts the bytes that differ from the output of fill_content.
uint64_t count_wrong_bytes(std::span<const std::byte> bytes, const digest& key);

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits with random-looking output.
constexpr uint64_t splitmix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr uint64_t splitmix64_step = 0x9e3779b97f4a7c15ULL;

/// A seeded stream of splitmix64 with the distributions used by traces. Not thread-safe.
class random_source {
 public:
  explicit random_source(uint64_t seed) : state_(seed) {}

  uint64_t next() { return splitmix64(state_ += splitmix64_step); }

  /// In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// In [0, bound); `bound` > 0. The bias is below bound / 2^64.
  uint64_t below(uint64_t bound) { return next() % bound; }

  bool chance(double probability) { return uniform() < probability; }

  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

  /// Box-Muller; the second value of the pair is not kept, so that each call costs exactly two draws.
  double normal() {
    double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

  /// Parameters: the mean, and the sigma of the logarithm.
  double lognormal(double mean, double sigma) {
    return mean * std::exp(sigma * normal() - sigma * sigma / 2);
  }

  /// Draws 1, 2, 3, ... with the given mean (at least 1).
  uint64_t geometric(double mean) {
    if (mean <= 1)
      return 1;
    return 1 + static_cast<uint64_t>(std::log1p(-uniform()) / std::log1p(-1 / mean));
  }

 private:
  uint64_t state_;
};

} // namespace terrace::cli
