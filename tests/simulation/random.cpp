#include "random.hpp"

namespace terrace::simulation {

uint64_t seeded_random::below(uint64_t bound) {
  assert(bound != 0);
  // Numbers under the remainder of 2^64 are drawn again, because they would favour the low results.
  uint64_t remainder = (0 - bound) % bound;
  uint64_t drawn = next();
  while (drawn < remainder)
    drawn = next();
  return drawn % bound;
}

} // namespace terrace::simulation
