// Decides which requests a connection serves, as far as their headers tell.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "protocol/frame.hpp"
#include "protocol/kinds.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace terrace {

/// The phases of a connection's life, in order.
enum class connection_phase : uint8_t {
  handshake, ///< hello has not been answered
  serving,
  draining,    ///< the daemon shuts down: requests in flight are still answered
  closing,     ///< its last frame is being sent
  quarantined, ///< its socket is closed, but its process may still read what it holds
};
const char* to_string(connection_phase phase);

struct arriving_request {
  request_id id = 0;
  protocol::kind kind{};
  bool in_flight = false;         ///< a request with the same id is in flight
  const char* verb = nullptr;     ///< name of the verb; null: clients send no frames of this kind
  bool while_draining = false;    ///< served while the daemon shuts down
  size_t descriptors = 0;         ///< descriptors that came with the frame
  size_t descriptors_of_verb = 0; ///< descriptors that the verb requires
};

/// Reads the header. `in_flight`: a request with its id is in flight.
arriving_request arriving(const protocol::frame& frame, bool in_flight);

/// Returns why the connection ends if its client violates the protocol, else `ok`.
error violation_of(const arriving_request& arrival, connection_phase phase);

struct early_refusal {
  error why;
  bool malformed = false; ///< the client's mistake, which ends a handshake
};
/// Precondition: the request violates nothing. `observes`: the connection may only look and administer.
std::optional<early_refusal> refusal_of(const arriving_request& arrival, connection_phase phase,
                                        bool observes);

// ---- texts of refusals ----

/// Adds the frame that ends its connection to `why`.
error with_frame(const error& why, const protocol::frame& frame);
/// Adds the trace of its request, if it has one, to `why`.
error with_trace(const error& why, const std::string& trace);
/// Returns the error for a request that there is no memory to serve.
error no_memory_for(protocol::kind kind);

} // namespace terrace
