// Connections and what they hold: one for each trust group.
#pragma once

#include "metrics/samples.hpp"

#include <array>

namespace terrace::metrics {

/// Why a connection or a request was turned away.
enum class refusal : uint8_t {
  credentials,     ///< the peer is not on the socket's list
  connections_max, ///< too many connections
  version,         ///< a protocol version that this daemon does not speak
  malformed,       ///< a frame that broke the protocol; its connection was ended
  queue_full,      ///< too many requests wait for memory
  draining,        ///< the daemon is shutting down
};
constexpr size_t refusals = 6;
std::string_view to_string(refusal reason);

/// Any thread.
class client_probe {
 public:
  void connected() noexcept;
  void disconnected() noexcept { connections_.subtract(); } ///< exactly once for every `connected`
  void refused(refusal reason) noexcept { refused_[static_cast<size_t>(reason)].add(); }
  void received(uint64_t bytes) noexcept { received_bytes_.add(bytes); } ///< of frames
  void sent(uint64_t bytes) noexcept { sent_bytes_.add(bytes); }
  void stopped_reading() noexcept { stalls_.add(); } ///< out of credit
  void maps(uint64_t bytes) noexcept { region_bytes_.add(bytes); }
  void unmaps(uint64_t bytes) noexcept { region_bytes_.subtract(bytes); }
  void stages(uint64_t bytes) noexcept { staged_bytes_.add(bytes); }
  void unstages(uint64_t bytes) noexcept { staged_bytes_.subtract(bytes); }
  void quarantines(uint64_t bytes) noexcept { quarantined_bytes_.add(bytes); }
  void unquarantines(uint64_t bytes) noexcept { quarantined_bytes_.subtract(bytes); }

  void lease_taken() noexcept;
  void lease_ended() noexcept { leases_.subtract(); } ///< exactly once for every `lease_taken`
  void lease_old() noexcept { old_leases_.add(); }    ///< once for a lease older than lease.warn_after
  void old_lease_ended() noexcept { old_leases_.subtract(); }

  void collect(const labels& of, sample_sink& sink) const;

 private:
  gauge connections_, region_bytes_, staged_bytes_, quarantined_bytes_, leases_, old_leases_;
  counter accepted_, received_bytes_, sent_bytes_, stalls_, leases_taken_;
  std::array<counter, refusals> refused_;
};

} // namespace terrace::metrics
