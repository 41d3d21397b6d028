// Small workloads, written down or drawn.
#pragma once

#include "simulate/workload.hpp"

#include <initializer_list>
#include <random>
#include <vector>

namespace terrace::simulate {

/// Chunks of 10 tokens, one request a second, no partial tails.
inline workload workload_of(std::initializer_list<std::vector<uint64_t>> chains) {
  workload made(10);
  uint64_t second = 0;
  for (const auto& ids : chains)
    made.add({.at_ns = 1'000'000'000 * second++, .input_tokens = static_cast<uint32_t>(ids.size() * 10)},
             ids);
  return made;
}

struct drawn_shape {
  size_t requests = 12;
  size_t depth_max = 4;
  uint64_t branches = 2; ///< ids to choose from at each depth
};

/// Prefixes of random paths through a tree.
inline workload drawn_workload(std::mt19937_64& random, const drawn_shape& shape = {}) {
  workload made(10);
  for (size_t i = 0; i < shape.requests; ++i) {
    std::vector<uint64_t> ids(1 + random() % shape.depth_max);
    for (uint64_t& id : ids)
      id = random() % shape.branches;
    auto tokens = static_cast<uint32_t>(ids.size() * 10 + random() % 10);
    made.add({.at_ns = 1'000'000'000 * i, .input_tokens = tokens, .output_tokens = 5}, ids);
  }
  return made;
}

/// One chain of `depth` chunks that comes again and again, and short ones between.
inline workload interleaved_chains(std::mt19937_64& random, uint64_t depth) {
  workload made(10);
  std::vector<uint64_t> deep(depth);
  for (uint64_t& id : deep)
    id = random();
  for (size_t i = 0; i < 60; ++i) {
    std::vector<uint64_t> brief(1 + random() % 5);
    for (uint64_t& id : brief)
      id = random() % 3;
    const auto& ids = i % 5 == 0 ? deep : brief;
    made.add({.at_ns = 1'000'000'000 * i, .input_tokens = static_cast<uint32_t>(ids.size() * 10)}, ids);
  }
  return made;
}

} // namespace terrace::simulate
