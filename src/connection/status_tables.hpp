// Writes parts of the answers to status and policies on the wire.
#pragma once

#include "base/tier_properties.hpp"
#include "connection/client_environment.hpp"
#include "connection/client_state.hpp"
#include "group/group_messages.hpp"
#include "index/space_registry.hpp"
#include "index/tenant_directory.hpp"
#include "memory/segmented_arena.hpp"
#include "protocol/terrace_generated.h"
#include "tier/messages.hpp"
#include "tier/policy/policy_messages.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

// Reads and writes quotas and tenants on the wire.

/// The quota that an operator asks for.
struct quota_setting {
  std::string name;
  tier_kind tier = nowhere;
  quota_change change;

  std::string text() const; ///< for the log: "batch: host at most 1048576 bytes"
};

/// Precondition: `asked` has a name. Errors: `bad_request`.
result<quota_setting> quota_of(const wire::Quota& asked);

/// Writes the tenants of all tiers, those with quotas first.
flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::TenantStatus>>>
write_tenants(flatbuffers::FlatBufferBuilder& body, const std::vector<tier_report>& tiers);

// The state of a trust group and of the daemon, for `status`.

/// Collects the answers of a group's actors one by one, and what the actors do not know. Used by one thread
/// at a time.
struct group_status {
  std::string name;
  std::string path; ///< path of its first socket
  bool isolated = false;
  group_report group;
  policies_report policies;
  std::vector<tier_report> tiers; ///< the serving tiers, fastest first, then those that do not serve
  /// Why no device reads its disk itself; empty if devices may, or if there are none.
  std::string disk_refusal;
  const tenant_directory* tenants = nullptr; ///< of the group

  /// Called when the actor of a tier has ended.
  void tier_ended(size_t place);
  /// Adds what the mover of a tier knows: why the tier is degraded and what an operator should know, each
  /// possibly empty, and its read speed, 0 if unknown.
  void tier_service(tier_kind kind, std::string degraded, std::string notice, uint64_t read_bytes_per_s = 0);
  /// Fills in the names of the tiers' policies. Call it once `policies` is set.
  void name_policies();
  /// Adds what only the arena knows to the host tier, which is the first one.
  void add_memory(const segmented_arena& memory);
};

/// `clients`: those of the group. The answer shows no other group.
flatbuffers::Offset<wire::StatusAnswer>
write_status_answer(flatbuffers::FlatBufferBuilder& body, const group_status& status,
                    const client_environment& environment,
                    const std::vector<std::shared_ptr<const client_state>>& clients);

// Writes the pools of an open space for clients.

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>>
write_open_pools(flatbuffers::FlatBufferBuilder& body, const space_spec& spec);

flatbuffers::Offset<wire::OpenSpaceAnswer> write_open_space_answer(flatbuffers::FlatBufferBuilder& body,
                                                                   const opened_space& space);

flatbuffers::Offset<wire::TierStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                   const tier_report& tier, uint64_t hit_tokens);
flatbuffers::Offset<wire::ClientStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                     const client_state& client,
                                                     std::chrono::steady_clock::time_point now);

/// `spec`: null if its fields are not known.
flatbuffers::Offset<wire::SpaceStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                    const group_status& status, space_id space,
                                                    const digest& fingerprint, const space_spec* spec);

/// `skipped`: requests that the shadows did not see, because they lagged behind.
flatbuffers::Offset<wire::PoliciesAnswer> write_policies(flatbuffers::FlatBufferBuilder& body,
                                                         const std::string& group,
                                                         const policies_report& policies,
                                                         const shadow_report& shadows, uint64_t skipped);

} // namespace terrace
