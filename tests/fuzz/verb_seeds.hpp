// Inputs of fuzz_verbs that reach every verb: what its mutations start from, and what a test plays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::fuzz {

struct verb_seed {
  std::string name;
  std::vector<uint8_t> bytes;
};

std::vector<verb_seed> verb_seeds();

} // namespace terrace::fuzz
