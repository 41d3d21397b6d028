// What requests of operators return.
#pragma once

#include "base/ids.hpp"
#include "client/types.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace terrace::client {

/// A lease of the trust group.
struct lease_status {
  lease_id lease;
  uint64_t number = 0;        ///< in the order in which they were taken, from 1
  connection_id connection{}; ///< its owner; 0: it is pinned
  uint32_t space = 0;
  uint32_t chunks = 0;
  uint64_t tokens = 0;
  uint64_t bytes = 0; ///< of what it holds in all tiers; of what several leases hold, for each of them
  std::chrono::milliseconds age{};
  bool revoked = false; ///< its holders are being told
};

struct leases_status {
  uint64_t count = 0;               ///< of all
  std::vector<lease_status> leases; ///< the oldest first, at most 1,024
};

/// What a check has found.
struct check_result {
  uint64_t count = 0;                   ///< of differences
  std::vector<std::string> differences; ///< the first 64, a sentence each
  uint64_t objects = 0;                 ///< of all tiers
  uint64_t sessions = 0;
  uint64_t connections = 0;
  std::map<std::string, uint64_t> references; ///< to objects, by who has them
  bool idle = false; ///< no request was in progress: what only requests may hold was compared too
  std::vector<std::string> left_out; ///< what could not be compared, and why
};

struct revoke_result {
  uint32_t holders = 0;           ///< connections that had the lease
  uint64_t quarantined_bytes = 0; ///< that they may be reading in place
};

/// A prompt.
struct prompt_request {
  space in;
  prefix what;
  uint32_t tiers = 0; ///< of `evict`: bit n: tier_kind n; 0: all
  request_options options;
};

struct move_share {
  uint32_t chunks = 0;
  uint64_t bytes = 0;
};
struct move_result {
  uint32_t requested_chunks = 0;
  move_share moved;
  move_share present; ///< were in the tier already
  move_share missing; ///< are in no tier, or cannot be found behind such a chunk
  move_share held;    ///< are in the tier now, and stay above it, because somebody holds them
  move_share failed;  ///< could not be brought there
};

struct pin_result {
  uint32_t requested_chunks = 0;
  uint32_t pinned_chunks = 0; ///< leading ones; 0: nothing was found, and nothing is pinned
  uint64_t tokens = 0;
  uint64_t bytes = 0; ///< of what it holds in all tiers
  lease_id lease;     ///< as `leases` lists it
};

struct unpin_result {
  uint32_t pins = 0; ///< 0: there was none
  uint64_t bytes = 0;
};

} // namespace terrace::client
