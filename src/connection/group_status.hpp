// The state of a trust group and of the daemon, for `status`.
#pragma once

#include "connection/client_environment.hpp"
#include "connection/client_state.hpp"
#include "group/group_messages.hpp"
#include "memory/segmented_arena.hpp"
#include "protocol/terrace_generated.h"
#include "tier/policy/policy_messages.hpp"
#include "tier/tier_report.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

/// The answers of a group's actors, collected one by one, and what the actors do not know. Used by one thread at a time.
struct group_status {
  std::string name;
  std::string path; ///< of its first socket
  bool isolated = false;
  group_report group;
  policies_report policies;
  std::vector<tier_report> tiers; ///< fastest first; of those that serve first
  std::string disk_refusal; ///< why no device reads its disk itself; empty if they may, or there is none

  /// The actor of a tier has ended.
  void tier_ended(size_t place);
  /// What the mover of a tier knows: why it is degraded, and what an operator should know, or empty; and how fast it is
  /// read, or 0.
  void tier_service(tier_kind kind, std::string degraded, std::string notice, uint64_t read_bytes_per_s = 0);
  /// The names of the tiers' policies, once `policies` is there.
  void name_policies();
  /// What only the arena of the host tier knows, which is the first one.
  void add_memory(const segmented_arena& memory);
};

/// `clients`: of the group. The answer shows no other group.
flatbuffers::Offset<wire::StatusAnswer>
write_status_answer(flatbuffers::FlatBufferBuilder& body, const group_status& status,
                    const client_environment& environment,
                    const std::vector<std::shared_ptr<const client_state>>& clients);

} // namespace terrace
