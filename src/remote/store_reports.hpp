// What operators ask about a remote store, and the answers.
#pragma once

#include "base/error.hpp"
#include "base/request_context.hpp"
#include "remote/tls_stream.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace::remote {

/// What a server tells of its memory.
struct store_memory {
  uint64_t used_bytes = 0;
  uint64_t max_bytes = 0; ///< 0: no bound
  std::string policy;     ///< maxmemory-policy; empty: it is not told
};

/// Reads the section "memory" of INFO.
store_memory parse_memory(std::string_view text);

/// That of two nodes of a cluster together.
store_memory sum_of(const store_memory& one, const store_memory& other);

/// What an operator should change about a server with this memory; empty: nothing.
std::string memory_warning(const store_memory& memory);

/// Says what an operator should change if the store's last answers took `mean` and a lookup waits `budget` for them; empty: nothing. Few
/// answers say nothing: the first ones of a connection are slower.
std::string budget_warning(uint32_t answers, std::chrono::nanoseconds mean, std::chrono::nanoseconds budget);

/// A node of a cluster.
struct store_node {
  std::string address;
  std::string state;  ///< "ready", "connecting" or "down"
  std::string reason; ///< if it is not ready
  uint32_t slots = 0;
  bool replica = false; ///< the slots are its primary's
};

/// Requests that were sent a second time because their answers were late.
struct store_hedges {
  uint64_t sent = 0;
  uint64_t won = 0; ///< the second one was answered first
};

/// Objects that replicas were asked for.
struct store_replica_reads {
  uint64_t read = 0;
  uint64_t asked_primary = 0; ///< a replica did not have them, was lost or refused
  uint64_t damaged = 0;       ///< a replica had other bytes; the primary was asked
};

struct store_status_request {};
struct store_status {
  error failure; ///< the actor has ended
  std::string address, prefix;
  std::string state; ///< "ready", "connecting" or "down"
  std::chrono::seconds since{0};
  std::string reason, notice; ///< the former if it is not ready
  bool encrypted = false;     ///< values are
  bool compressed = false;    ///< those of 16-bit floats are
  std::string server, version;
  bool told = false; ///< the store tells which keys change
  uint32_t answers = 0;
  std::chrono::nanoseconds mean_answer{0}, slowest_answer{0}; ///< of the last `answers` ones
  uint64_t read_bytes = 0, written_bytes = 0;
  uint64_t stored_bytes = 0;                                 ///< of what was written, as it is in the store
  std::vector<std::pair<std::string_view, uint64_t>> misses; ///< by reason
  std::optional<store_memory> memory;
  std::string memory_refused; ///< why there is none
  std::vector<std::string> warnings;
  std::vector<store_node> nodes;                    ///< none: it is no cluster
  std::optional<store_hedges> hedges;               ///< none: its kind hedges nothing
  std::optional<store_replica_reads> replica_reads; ///< none: its address does not say reads=replicas
  uint32_t owed_clears = 0;                         ///< that the store has not been told of
};

/// Asks a store once, over a connection of its own.
struct store_probe_request {};
struct probe_step {
  std::string name;
  std::chrono::nanoseconds took{0};
  std::string failure; ///< what is wrong and what to do; empty: it is done
};
struct store_probe {
  error failure;
  std::string address;
  std::vector<probe_step> steps; ///< up to the first that failed
  bool works() const { return !steps.empty() && steps.back().failure.empty(); }
};

/// Removes the values of which clears have replaced the tokens.
struct store_sweep_request {
  bool dry_run = false;
  uint32_t keys_per_s = 0; ///< that are looked at; 0: as many as the store is asked for by default
  context_ptr context;     ///< the sweep stops when it ends
};
struct store_sweep {
  error failure;
  std::string address;
  uint64_t keys = 0;    ///< that were looked at in the second pass
  uint64_t current = 0; ///< values that daemons find
  uint64_t unknown = 0; ///< values of which nobody knows whether they are found
  uint64_t stale = 0, stale_bytes = 0;
};

/// The credentials for the next connection.
struct new_credentials_notice {
  store_credentials with;
};

/// After a reload: those of each group's remote stores, in the order of the groups. None: a file cannot be read.
struct all_credentials_notice {
  std::vector<std::vector<std::optional<store_credentials>>> of_groups;
};

} // namespace terrace::remote
