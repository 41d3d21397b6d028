// The only source of chance of a simulation. A seed gives the same numbers on every machine and with every standard
// library: std::mt19937_64 is specified bit by bit, unlike the distributions of the standard, so these are ours and use
// integers alone.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace terrace::simulation {

constexpr uint32_t per_million = 1'000'000;

class seeded_random {
 public:
  explicit seeded_random(uint64_t seed) : engine_(seed) {}

  uint64_t next() { return engine_(); }
  /// Returns 0 to `bound` - 1, each with the same chance. `bound` is not 0.
  uint64_t below(uint64_t bound);
  /// Returns `least` to `most`, both included.
  uint64_t between(uint64_t least, uint64_t most) { return least + below(most - least + 1); }
  bool coin() { return (next() >> 63) != 0; }
  /// True in `of_million` of a million draws.
  bool chance(uint32_t of_million) { return of_million != 0 && below(per_million) < of_million; }

  /// Swarm testing: a run in which every fault is a little likely resembles every other, so each run draws which faults
  /// it has at all. Returns 0 in half of the draws, otherwise `most` or a half, a quarter, ... a 128th of it.
  uint32_t swarm(uint32_t most) { return coin() ? 0 : most >> below(8); }

  template <class T>
  void shuffle(std::vector<T>& all) {
    for (size_t left = all.size(); left > 1; --left)
      std::swap(all[left - 1], all[below(left)]);
  }

  /// Returns a stream of its own for one part of the simulation, whose draws do not move those of other parts.
  seeded_random fork() { return seeded_random(next()); }

 private:
  std::mt19937_64 engine_;
};

} // namespace terrace::simulation
