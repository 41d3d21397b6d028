// Counts connections and their resources, per trust group.
#pragma once

#include "base/miss_reason.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace terrace::metrics {

// Missed tokens per client and reason, with a number of series that clients cannot increase without limit.

/// Clients are counted by their names. The first `named_max` names that miss something have their own series for the
/// lifetime of the daemon; all further ones share "other". Thread-safe.
class miss_table {
 public:
  static constexpr size_t named_max = 64;

  /// A client chooses its name: see `printable_label`.
  void missed(const std::string& group, std::string_view client, miss_reason why, uint64_t tokens);
  /// Reasons without a token have no series.
  void collect(sample_sink& sink) const;

 private:
  using by_reason = std::array<uint64_t, miss_reasons>;

  mutable std::mutex mutex_;
  size_t named_ = 0;
  std::map<std::pair<std::string, std::string>, by_reason> tokens_; ///< by group and client
};

/// Why a connection or request was refused.
enum class refusal : uint8_t {
  credentials,     ///< the peer is not allowed on the socket
  connections_max, ///< too many connections
  version,         ///< a protocol version that the daemon does not support
  malformed,       ///< a frame that violates the protocol, or a request with wrong contents
  queue_full,      ///< too many requests are waiting for memory
  draining,        ///< the daemon is shutting down
};
constexpr size_t refusals = 6;
std::string_view to_string(refusal reason);

/// Counts what clients keep between their requests, per trust group. Safe on any thread.
class session_probe {
 public:
  void pins_are(uint64_t count, uint64_t bytes) noexcept; ///< the totals of the trust group
  /// The totals of the trust group. `evicted` counts those evicted since the start because of a bound.
  void sessions_are(uint64_t count, uint64_t active, uint64_t bytes, uint64_t evicted) noexcept;
  void prompts_are(uint64_t count, uint64_t bytes,
                   uint64_t evicted) noexcept; ///< the totals of the trust group, in entries
  void prompt_asked(bool found) noexcept {
    (found ? prompts_found_ : prompts_missed_).add();
  } ///< once per lookup
  void tails_are(uint64_t count) noexcept {
    tails_.set(count);
  } ///< tails of the trust group that somebody refers to
  /// Removed from the tiers, because nobody refers to it any more.
  void tail_removed() noexcept { tails_removed_.add(); }
  void session_turn() noexcept { session_turns_.add(); } ///< a turn was saved
  /// Host memory that sessions of the trust group hold.
  void sessions_hold(uint64_t count, uint64_t bytes) noexcept;
  void session_demoted(bool below) noexcept { (below ? sessions_demoted_ : sessions_released_).add(); }
  void session_unheld() noexcept { sessions_unheld_.add(); } ///< a session alone is too large

  void collect(const labels& series, sample_sink& sink) const;

 private:
  gauge sessions_, sessions_active_, session_bytes_, sessions_evicted_, pins_, pinned_bytes_;
  gauge held_sessions_, session_held_bytes_, tails_, prompts_, prompt_bytes_, prompts_evicted_;
  counter session_turns_, sessions_demoted_, sessions_released_, sessions_unheld_, tails_removed_;
  counter prompts_found_, prompts_missed_;
};

/// Safe on any thread.
class client_probe {
 public:
  void connected() noexcept;
  void disconnected() noexcept { connections_.subtract(); } ///< call once per `connected`
  void refused(refusal reason) noexcept { refused_[static_cast<size_t>(reason)].add(); }
  void received(uint64_t bytes) noexcept { received_bytes_.add(bytes); } ///< bytes of frames
  void sent(uint64_t bytes) noexcept { sent_bytes_.add(bytes); }
  void rung() noexcept { rings_.add(); } ///< a client has written a counter
  void awaits_counter() noexcept { awaited_counters_.add(); }
  void awaits_no_counter() noexcept { awaited_counters_.subtract(); } ///< call once per `awaits_counter`
  void stopped_reading() noexcept { stalls_.add(); }                  ///< the connection is out of credit
  /// The requests of a connection took `before` bytes, and take `now`.
  void requests_take(uint64_t before, uint64_t now) noexcept {
    request_bytes_.add(now);
    request_bytes_.subtract(before);
  }
  void stages(uint64_t bytes) noexcept { staged_bytes_.add(bytes); }
  void unstages(uint64_t bytes) noexcept { staged_bytes_.subtract(bytes); }
  void quarantines(uint64_t bytes) noexcept { quarantined_bytes_.add(bytes); }
  void unquarantines(uint64_t bytes) noexcept { quarantined_bytes_.subtract(bytes); }

  void lease_taken() noexcept;
  void lease_shortened() noexcept { leases_shortened_.add(); } ///< a lease would have held too much
  void left_to_recompute(uint64_t tokens) noexcept;  ///< once per request: the client computes them faster
  void fell_behind() noexcept { late_reads_.add(); } ///< a read, which ended with what had come by then
  /// Once per load of a client that declares its speed: the time in which it would have computed what it got, and the time until
  /// the load was answered.
  void spared(std::chrono::nanoseconds computing, std::chrono::nanoseconds loading) noexcept {
    spared_ns_.add(static_cast<uint64_t>(computing.count()));
    spared_load_ns_.add(static_cast<uint64_t>(loading.count()));
  }
  std::chrono::nanoseconds spared_computing() const noexcept {
    return std::chrono::nanoseconds(spared_ns_.value());
  }
  std::chrono::nanoseconds spared_loading() const noexcept {
    return std::chrono::nanoseconds(spared_load_ns_.value());
  }
  /// Once per lookup under a lease that misses a part of its prefix: its tokens, and why the first chunk was missing.
  void missed(const std::string& group, std::string_view client, miss_reason why, uint64_t tokens) {
    missed_tokens_[static_cast<size_t>(why)].add(tokens);
    misses_.missed(group, client, why, tokens);
  }
  void loaded_nothing() noexcept { no_load_requests_.add(); } ///< because its client asked for that
  void stored_nothing() noexcept { no_store_requests_.add(); }
  void lease_ended() noexcept { leases_.subtract(); } ///< call once per `lease_taken`
  /// An operator did it; `lease_ended` is called as well.
  void lease_revoked() noexcept { leases_revoked_.add(); }
  void lease_old() noexcept {
    old_leases_.add();
  } ///< once per lease older than twice connection.request_deadline
  void old_lease_ended() noexcept { old_leases_.subtract(); }

  void told_events(uint64_t count) noexcept { events_told_.add(count); }
  void lost_subscriber() noexcept { subscribers_lost_.add(); } ///< the subscriber read too slowly
  void checked(uint64_t differences) noexcept {                ///< a run of `terrace check`
    checks_.add();
    check_differences_.add(differences);
  }

  void collect(const labels& series, sample_sink& sink) const;

  session_probe sessions;

 private:
  gauge connections_, request_bytes_, staged_bytes_, quarantined_bytes_, leases_, old_leases_;
  counter accepted_, received_bytes_, sent_bytes_, stalls_, leases_taken_, leases_shortened_, leases_revoked_;
  counter checks_, check_differences_;
  gauge awaited_counters_;
  counter rings_;
  counter spared_ns_, spared_load_ns_;
  counter recompute_requests_, recompute_tokens_, late_reads_, no_load_requests_, no_store_requests_;
  counter events_told_, subscribers_lost_;
  std::array<counter, miss_reasons> missed_tokens_;
  miss_table misses_;
  std::array<counter, refusals> refused_;
};

} // namespace terrace::metrics
