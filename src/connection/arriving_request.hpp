// Which requests a connection serves, as far as that is known before their bodies are read.
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

/// The life of a connection, in order.
enum class connection_phase : uint8_t {
  handshake, ///< until hello is answered
  serving,
  draining,    ///< the daemon shuts down: what is in flight is answered
  closing,     ///< its last frame is being sent
  quarantined, ///< its socket is closed, but its process may be reading what it holds
};
const char* to_string(connection_phase phase);

struct arriving_request {
  request_id id = 0;
  protocol::kind kind{};
  bool in_flight = false;         ///< a request with this id is
  const char* verb = nullptr;     ///< its name; null: clients send no frames of this kind
  bool while_draining = false;    ///< served while the daemon shuts down
  size_t descriptors = 0;         ///< that came with it
  size_t descriptors_of_verb = 0; ///< that have to
};

/// What its header says. `in_flight`: a request with its id is.
arriving_request arriving(const protocol::frame& frame, bool in_flight);

/// Why the connection ends: its client does not speak the protocol. `ok`: it does.
error violation_of(const arriving_request& what, connection_phase phase);

struct early_refusal {
  error why;
  bool malformed = false; ///< the client's mistake, with which a handshake ends
};
/// For a request that violates nothing. `observes`: the connection may only look and administer.
std::optional<early_refusal> refusal_of(const arriving_request& what, connection_phase phase, bool observes);

// ---- texts of refusals ----

/// `why`, with the frame that ends its connection.
error with_frame(const error& why, const protocol::frame& frame);
/// `why`, with the trace of its request, if it has one.
error with_trace(const error& why, const std::string& trace);
/// There is no memory to serve such a request.
error no_memory_for(protocol::kind kind);

} // namespace terrace
