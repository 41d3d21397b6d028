// Small workloads, written out or drawn at random.
#pragma once

#include "cli/simulate/workload.hpp"

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
  uint64_t branches = 2; ///< number of ids to choose from at each depth
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

/// One chain of `depth` chunks that returns again and again, with short chains in between.
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

/// Agents whose contexts grow a little from turn to turn, among many that come for a few turns only. Contexts
/// have 5 to 30 chunks.
inline workload short_sessions(std::mt19937_64& random, size_t requests) {
  struct agent {
    std::vector<uint64_t> context;
    uint64_t turns;
  };
  workload made(10);
  std::vector<agent> active;
  uint64_t at_ns = 0;
  for (size_t i = 0; i < requests; ++i) {
    if (active.size() < 3 || random() % 5 == 0) {
      active.push_back({std::vector<uint64_t>(5 + random() % 15), 1 + random() % 6});
      for (uint64_t& id : active.back().context)
        id = random();
    }
    size_t which = random() % active.size();
    agent& asks = active[which];
    for (uint64_t more = random() % 3; more > 0; --more)
      asks.context.push_back(random());
    at_ns += 200'000'000 + random() % 2'000'000'000;
    made.add({.at_ns = at_ns,
              .input_tokens = static_cast<uint32_t>(asks.context.size() * 10),
              .output_tokens = static_cast<uint32_t>(random() % 200)},
             asks.context);
    if (--asks.turns == 0)
      active.erase(active.begin() + static_cast<std::ptrdiff_t>(which));
  }
  return made;
}

} // namespace terrace::simulate
