// The handshake of a client: its request, and the answer on the wire.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "connection/client_environment.hpp"
#include "connection/client_state.hpp"
#include "protocol/terrace_generated.h"

#include <vector>

namespace terrace {

/// Error: `unsupported` for another version of the protocol.
result<void> checked_version(const wire::Hello& asked);

/// Returns the closed connections of the client's process from which it no longer reads; none if they belong
/// to an earlier daemon.
std::vector<connection_id> resumed_connections(const wire::Hello& asked, const boot_id& boot);

/// `isolated`: no memory of the group is mapped. `tiers`: tiers of the group, fastest first.
flatbuffers::Offset<wire::HelloAnswer> write_hello_answer(flatbuffers::FlatBufferBuilder& body,
                                                          const client_environment& environment,
                                                          const client_state& client, bool isolated,
                                                          const std::vector<tier_kind>& tiers);

} // namespace terrace
