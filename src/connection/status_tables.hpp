// Writes parts of the answers to status and policies on the wire.
#pragma once

#include "connection/client_state.hpp"
#include "index/space_registry.hpp"
#include "protocol/terrace_generated.h"
#include "tier/messages.hpp"
#include "tier/policy/policy_messages.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace terrace {

// Writes the pools of an open space for clients.

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>>
write_open_pools(flatbuffers::FlatBufferBuilder& body, const space_spec& spec);

flatbuffers::Offset<wire::OpenSpaceAnswer> write_open_space_answer(flatbuffers::FlatBufferBuilder& body,
                                                                   const opened_space& space);

flatbuffers::Offset<wire::TierStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                   const tier_report& tier);
flatbuffers::Offset<wire::ClientStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                     const client_state& client,
                                                     std::chrono::steady_clock::time_point now);
flatbuffers::Offset<wire::SpaceStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                    const opened_space& space);

/// `skipped`: requests that the shadows did not see, because they lagged behind.
flatbuffers::Offset<wire::PoliciesAnswer> write_policies(flatbuffers::FlatBufferBuilder& body,
                                                         const std::string& group,
                                                         const policies_report& policies,
                                                         const shadow_report& shadows, uint64_t skipped);

} // namespace terrace
