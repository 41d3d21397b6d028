// One client of the daemon: who it is, what it may do, and what it has.
//
// A client sends no messages and answers no requests: its connection does (connection.hpp). When it is destroyed, everything that
// the client had is released. It belongs to the actor of its connection.
#pragma once

#include "actors/connection/connection_environment.hpp"
#include "actors/connection/frame_channel.hpp"
#include "connection/client_holdings.hpp"
#include "connection/client_log.hpp"
#include "connection/request_values.hpp"
#include "protocol/terrace_generated.h"

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace terrace::actors {

class connected_client {
 public:
  connected_client(peer who, client_ptr record, std::shared_ptr<const connection_environment> environment);
  ~connected_client();

  const connection_environment& environment() const { return *environment_; }
  const trust_group& group() const { return *environment_->group; }
  const group_ptr& group_handle() const { return environment_->group; }
  const peer& who() const { return peer_; }
  const client_ptr& record() const { return record_; }
  const client_log& log() const { return log_; }

  // ---- its rights ----

  /// `denied`, unless it may change what serves all clients of the trust group. `why`: what the request would change.
  error may_govern(const char* why) const;
  /// `denied`, unless its trust group's memory may be mapped. `instead`: what the client can use.
  error may_map(const char* instead) const;

  // ---- what it has ----

  client_holdings& holdings() { return holdings_; }
  const client_holdings& holdings() const { return holdings_; }
  const region_budget_ptr& regions() const { return regions_; } ///< the bytes of regions that it may register
  const account_ptr& leased() const { return leased_; } ///< what its leases and readings hold of host memory
  result<staging*> staging_memory();                    ///< created on first use
  /// The actors of the sessions that it has used lately. One may have ended since: its session was parked or has ended.
  std::unordered_map<session_id, session_actor>& sessions() { return sessions_; }
  static constexpr size_t session_actors_max = 256;
  /// Status shows regions, leases and reservations from now on as they are.
  void show() { holdings_.show(*record_); }
  void count_lease_end(const client_holdings::ended_lease& ended);
  /// Counts what the client may be reading without a right to it. `whole`: everything that it may be reading, because it
  /// has closed its socket.
  void count_quarantine(bool whole);

  // ---- what it has declared ----

  /// The defaults of a space that it has open; those of any, if it has not.
  request_defaults defaults_of_space(uint32_t id);
  /// How fast it computes the space's KV, in tokens per second; 0: nothing is left to it.
  uint32_t prefill_speed(const wire::Options* options, const client_space& opened) const;
  /// True if the request is to find nothing, which is counted.
  bool loads_nothing(const wire::Options* options, const client_space& opened);
  /// True if the request is to store nothing, which is counted.
  bool stores_nothing(const wire::Options* options, const client_space& opened);
  /// Counts chunks that are left to it; 0: none.
  void count_recomputed(const space_spec& spec, uint32_t chunks);

 private:
  std::shared_ptr<const connection_environment> environment_;
  peer peer_;
  client_ptr record_;
  client_log log_;
  account_ptr leased_;
  client_holdings holdings_;
  region_budget_ptr regions_;
  std::unordered_map<session_id, session_actor> sessions_;
  uint64_t quarantined_bytes_ = 0;
};

} // namespace terrace::actors
