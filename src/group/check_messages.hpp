// Messages that check a trust group: its actor and its connections report their leases, sessions and holds.
#pragma once

#include "group/group_messages.hpp"
#include "tier/objects/reference_count.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

/// Asks the group for the next part of the leases that can be found by id.
struct check_group_request {
  /// leases per answer; the answer keeps them alive until it is read
  static constexpr size_t leases_max = 32;
  uint64_t after = 0; ///< a lease's number
};

/// References by digest: they keep nothing in the tiers.
struct named_references {
  uint64_t prompts = 0; ///< references of prompt entries to whole chunks
  uint64_t tails_of_sessions = 0;
  uint64_t tails_of_prompts = 0;
  uint64_t tails_of_stores = 0; ///< tails that are stored but not yet saved
};

struct check_group_answer {
  error failure;
  named_references named; ///< in the answer to the first request
  std::vector<lease_ptr> leases;
  uint64_t next = 0; ///< `after` of the next request; 0: this was the last part
  std::vector<std::string> differences;
};

/// Asks the group to recount the next sessions.
struct check_sessions_request {
  static constexpr size_t sessions_max = 256;
  bool begins = false;
};
struct check_sessions_answer {
  error failure;
  bool more = false;
  bool interrupted = false;
  uint64_t sessions = 0; ///< number of sessions now
  std::vector<std::string> differences;
};

/// A connection reports the leases that it owns, after it has sent all its notices to the group.
struct check_owner_request {
  connection_id owner{};
  std::vector<lease_id> leases;
};

/// Asks a connection what its client holds.
struct check_client_request {
  static constexpr size_t leases_max = 4'096; ///< leases checked in one turn
};
struct check_client_answer {
  error failure;
  std::vector<std::string> differences;
  std::vector<lease_ptr> leases;  ///< leases that the client owns or reads
  std::vector<hold_ptr> readings; ///< holds on objects whose places the client was told
  bool left_out = false;          ///< the client has too many to check in one turn
};

/// The result of a check.
struct check_report {
  static constexpr size_t differences_max = 64; ///< differences that are listed
  error failure;                                ///< set: the check has no result
  uint64_t objects = 0;                         ///< objects in all tiers
  uint64_t sessions = 0;
  uint64_t connections = 0;
  std::array<uint64_t, reference_kinds> references{}; ///< references to objects of all tiers, by kind
  uint64_t references_of_requests = 0;                ///< references that only requests have
  named_references named;
  bool idle = false; ///< no request was in progress, so holds of requests and lease charges were compared too
  std::vector<std::string> left_out;    ///< what could not be compared, and the reason
  std::vector<std::string> differences; ///< the first `differences_max`
  uint64_t differences_in_all = 0;

  void add(std::string difference) {
    ++differences_in_all;
    if (differences.size() < differences_max)
      differences.push_back(std::move(difference));
  }
};

} // namespace terrace
