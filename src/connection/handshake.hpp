// How a client begins: whether its user may connect, which version it speaks, which of its former connections end, and the
// answer on the wire. Here is also what a client may do to others (`may_govern`) and to the memory of its group (`may_map`).
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "connection/client_environment.hpp"
#include "connection/client_state.hpp"
#include "protocol/descriptors.hpp"
#include "protocol/kinds.hpp"
#include "protocol/terrace_generated.h"

#include <algorithm>
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

inline result<void> checked_version(const wire::Hello& asked) {
  if (asked.version() == protocol::version)
    return {};
  return fail(errc::unsupported, "protocol version " + std::to_string(asked.version()) +
                                     " is not supported; expected " + std::to_string(protocol::version));
}

inline std::vector<connection_id> resumed_connections(const wire::Hello& asked, const boot_id& boot) {
  std::vector<connection_id> resumed;
  const auto* known = asked.resumes_boot();
  if (asked.resumes() == nullptr || known == nullptr || known->size() != boot.bytes.size() ||
      !std::equal(boot.bytes.begin(), boot.bytes.end(), known->begin()))
    return resumed;
  for (uint64_t id : *asked.resumes())
    resumed.push_back(static_cast<connection_id>(id));
  return resumed;
}

inline flatbuffers::Offset<wire::HelloAnswer> write_hello_answer(flatbuffers::FlatBufferBuilder& body,
                                                                 const client_environment& environment,
                                                                 const client_state& client, bool isolated,
                                                                 const std::vector<tier_kind>& tiers) {
  std::vector<std::string> features{"sha256_cbor", "sha256", "xxh3_128", "memfd_regions"};
  if (!isolated)
    features.insert(features.end(), {"mapped_arena", "staging"});
  for (tier_kind tier : tiers)
    if (tier != memory_tier)
      features.emplace_back(to_string(tier));
  auto boot = body.CreateVector(environment.boot.bytes.data(), environment.boot.bytes.size());
  auto listed = body.CreateVectorOfStrings(features);
  auto group = body.CreateString(client.group);
  auto version = body.CreateString(TERRACE_VERSION);
  return wire::CreateHelloAnswer(body, protocol::version, version, boot, static_cast<uint64_t>(client.id),
                                 group, listed, environment.limits.credit_requests,
                                 environment.limits.credit_bytes, protocol::frame_bytes_max);
}

} // namespace terrace
