// Checks of a trust group: what its actor and its connections say about leases, sessions and what clients hold.
#pragma once

#include "group/group_messages.hpp"
#include "tier/objects/reference_count.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

/// To the group: the leases that can be found by id, in parts.
struct check_group_request {
  static constexpr size_t leases_max = 32; ///< of an answer: they live until it is read
  uint64_t after = 0;                      ///< a lease's number
};

/// References that keep nothing in the tiers: by digest.
struct named_references {
  uint64_t prompts = 0; ///< of prompt entries to whole chunks
  uint64_t tails_of_sessions = 0;
  uint64_t tails_of_prompts = 0;
  uint64_t tails_of_stores = 0; ///< that no save has named yet
};

struct check_group_answer {
  error failure;
  named_references named; ///< in the answer to the first request
  std::vector<lease_ptr> leases;
  uint64_t next = 0; ///< for the next request; 0: these were the last
  std::vector<std::string> differences;
};

/// To the group: the next sessions of a recount.
struct check_sessions_request {
  static constexpr size_t sessions_max = 256;
  bool begins = false;
};
struct check_sessions_answer {
  error failure;
  bool more = false;
  bool interrupted = false;
  uint64_t sessions = 0; ///< there are now
  std::vector<std::string> differences;
};

/// From a connection to the group, after all its notices: the leases that it owns.
struct check_owner_request {
  connection_id owner{};
  std::vector<lease_id> leases;
};

/// To a connection: what its client has.
struct check_client_request {
  static constexpr size_t leases_max = 4'096; ///< that are looked at in a turn
};
struct check_client_answer {
  error failure;
  std::vector<std::string> differences;
  std::vector<lease_ptr> leases;  ///< its own, and those that it reads
  std::vector<hold_ptr> readings; ///< objects whose places the client was told
  bool left_out = false;          ///< there are too many for one turn
};

/// What a check has found.
struct check_report {
  static constexpr size_t differences_max = 64; ///< that are named
  error failure;                                ///< the check has no result
  uint64_t objects = 0;                         ///< of all tiers
  uint64_t sessions = 0;
  uint64_t connections = 0;
  std::array<uint64_t, reference_kinds> references{}; ///< of each kind to objects of all tiers
  uint64_t references_of_requests = 0;                ///< those of nobody else
  named_references named;
  bool idle =
      false; ///< no request was in progress: holds of requests, and what is charged for leases, were compared too
  std::vector<std::string> left_out;    ///< what could not be compared, and why
  std::vector<std::string> differences; ///< the first ones
  uint64_t differences_in_all = 0;

  void add(std::string difference) {
    ++differences_in_all;
    if (differences.size() < differences_max)
      differences.push_back(std::move(difference));
  }
};

} // namespace terrace
