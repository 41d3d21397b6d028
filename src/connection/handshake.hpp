// How a client begins: whether its user may connect, which version it speaks, which of its former connections end, and the
// answer on the wire. Here is also what a client may do to others (`may_govern`) and to the memory of its group (`may_map`).
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "connection/client_environment.hpp"
#include "connection/client_state.hpp"
#include "protocol/terrace_generated.h"

#include <string>
#include <sys/types.h>
#include <vector>

namespace terrace {

// Permissions of a trust group's clients.

/// Returns whether the client may change what serves all clients of the group. Only the daemon's own user and
/// root may. Error: `denied`. `why`: what the request would change.
inline result<void> may_govern(uid_t client, uid_t daemon, const char* why) {
  if (client == 0 || client == daemon)
    return {};
  return fail(errc::denied,
              "expected the daemon's own user or root, got user " + std::to_string(client) + ": " + why);
}

/// Returns whether clients may map the memory of the group. Error: `denied`. `instead`: what the client can
/// use.
inline result<void> may_map(const std::string& group, bool isolated, const char* instead) {
  if (!isolated)
    return {};
  return fail(errc::denied, "nothing is mapped in the isolated group " + group + "; use " + instead);
}

/// Returns the error for a user that is not admitted to a socket.
inline error not_admitted(uid_t uid, gid_t gid, const std::string& path) {
  return {errc::denied, "uid " + std::to_string(uid) + ", gid " + std::to_string(gid) + " may not use " +
                            path + "; see uids and gids in its [[listen]]"};
}

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
