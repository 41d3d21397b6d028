// The seed of a random test: a new one for each run, printed on failure, and taken from TERRACE_TEST_SEED to
// repeat a run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace terrace::test {

inline uint64_t test_seed() {
  if (const char* given = std::getenv("TERRACE_TEST_SEED"))
    return std::strtoull(given, nullptr, 10);
  return std::random_device{}();
}

/// Returns the text for SCOPED_TRACE.
inline std::string seed_text(uint64_t seed) {
  return "run again with TERRACE_TEST_SEED=" + std::to_string(seed);
}

} // namespace terrace::test
