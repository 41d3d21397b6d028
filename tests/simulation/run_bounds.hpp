// What of a seed is played: all of it by default. A failing seed is reduced by leaving out what it does not need.
//
//   auto smallest = reduce(bounds, [](const run_bounds& tried) { return fails(tried); });
//   std::cout << smallest.text();   // "seed=17 lives=1 clients=0,2 deeds=14 without=pin,disk_faults"
#pragma once

#include "client_world.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace terrace::simulation {

struct run_bounds {
  uint64_t seed = 1;
  uint32_t lives = 3;                        ///< crashes and restarts, at most
  std::optional<std::set<uint32_t>> clients; ///< numbers of those that act; none: all
  uint32_t deeds = 150;                      ///< of a client, at most
  uint32_t events = 6000;                    ///< of a life, at most
  std::set<std::string> without;             ///< names of deeds, and of `hardships`

  /// What makes a life hard beside what clients do.
  static constexpr std::array hardships{"disk_faults",  "disk_delays", "vanishing",    "rot", "cuts",
                                        "actor_delays", "redis",       "store_faults", "gpu", "gpu_faults"};

  bool has(const char* name) const { return !without.contains(name); }
  bool acts(uint32_t client) const { return !clients || clients->contains(client); }

  std::string text() const;
  /// Nothing if the text is not one of `text`.
  static std::optional<run_bounds> parse(const std::string& text);
  bool operator==(const run_bounds&) const = default;
};

/// Smaller bounds for which `fails` is still true; it is true for `all`, and is asked some hundred times.
run_bounds reduce(const run_bounds& all, const std::function<bool(const run_bounds&)>& fails);

} // namespace terrace::simulation
