// Volumes that are written with the real journal and queue, crash at every step, and are recovered. A failure prints its
// seed; TERRACE_SIMULATION_SEED=N runs that seed alone, TERRACE_SIMULATION_SEEDS=N runs that many.
#include "simulated_volume.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace terrace::simulation {
namespace {

const std::vector<std::string> none;

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

/// Calls `run` with each seed until a test fails.
template <class Run>
void for_each_seed(Run&& run) {
  if (uint64_t one = number_from("TERRACE_SIMULATION_SEED", 0); one != 0) {
    run(one);
    return;
  }
  uint64_t seeds = number_from("TERRACE_SIMULATION_SEEDS", 100);
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed)
    run(seed);
}

/// The kind of a broken promise: its text up to what differs.
std::string kind_of(const std::string& broken) { return broken.substr(0, broken.find("object ")); }

void crash_everywhere(bool faults) {
  uint64_t crashes = 0, intact = 0, promises = 0, clears = 0;
  std::map<std::string, uint64_t> excused; ///< the first seed of each kind
  for_each_seed([&](uint64_t seed) {
    simulated_volume volume({.seed = seed, .faults = faults});
    volume.run();
    EXPECT_EQ(volume.model().broken(), none) << "run again with TERRACE_SIMULATION_SEED=" << seed;
    crashes += volume.crashes();
    intact += volume.intact();
    promises += volume.model().promises_checked();
    clears += volume.model().clears_checked();
    for (const std::string& text : volume.model().excused())
      excused.emplace(kind_of(text), seed);
  });
  std::cout << crashes << " crashes, " << intact << " intact objects, " << promises << " promises and "
            << clears << " clears checked\n";
  for (const auto& [kind, seed] : excused)
    std::cout << "excused after an unrecorded clear, first with seed " << seed << ": " << kind << '\n';
  EXPECT_GT(intact, 0U) << "a test in which nothing survives shows nothing";
  if (crashes > 10'000) {
    EXPECT_GT(promises, 1000U);
    EXPECT_GT(clears, 1000U);
  }
}

TEST(SimulatedVolume, KeepsWhatItPromisedWhereverItCrashes) { crash_everywhere(false); }

TEST(SimulatedVolume, KeepsWhatItPromisedOnADeviceThatFails) { crash_everywhere(true); }

TEST(SimulatedVolume, TheSameSeedDoesTheSame) {
  auto hash = [](uint64_t seed) {
    simulated_volume volume({.seed = seed, .faults = true});
    volume.run();
    return volume.trace_hash();
  };
  for (uint64_t seed = 1; seed <= 5; ++seed)
    EXPECT_EQ(hash(seed), hash(seed));
  EXPECT_NE(hash(1), hash(2));
}

/// Returns the first seed that finds the error; 0: none does.
uint64_t found_by(planted_error planted) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    simulated_volume volume({.seed = seed, .planted = planted});
    volume.run();
    if (!volume.model().broken().empty()) {
      std::cout << "found by seed " << seed << ": " << volume.model().broken().front() << '\n';
      return seed;
    }
  }
  return 0;
}

TEST(SimulatedVolume, FindsACheckpointWhoseImageIsNotSynced) {
  EXPECT_NE(found_by(planted_error::image_not_synced), 0U);
}

TEST(SimulatedVolume, FindsACheckpointWhoseHeaderIsNotSynced) {
  EXPECT_NE(found_by(planted_error::header_not_synced), 0U);
}

TEST(SimulatedVolume, FindsAClearThatIsAnsweredBeforeItIsDurable) {
  EXPECT_NE(found_by(planted_error::clear_not_synced), 0U);
}

TEST(SimulatedVolume, FindsAnObjectThatIsPublishedBeforeItIsWritten) {
  EXPECT_NE(found_by(planted_error::published_unwritten), 0U);
}

TEST(SimulatedVolume, FindsAVolumeInUseBeforeItsSuperblocksAreDurable) {
  EXPECT_NE(found_by(planted_error::superblock_not_synced), 0U);
}

} // namespace
} // namespace terrace::simulation
