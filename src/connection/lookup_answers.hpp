// The answer to a lookup on the wire.
#pragma once

#include "base/ids.hpp"
#include "index/prefix_plan.hpp"
#include "protocol/terrace_generated.h"

namespace terrace {

/// `held`: empty if there is no lease.
inline flatbuffers::Offset<wire::LookupAnswer>
write_lookup_answer(flatbuffers::FlatBufferBuilder& body, const prefix_plan& plan, const lease_id& held) {
  static_assert(sizeof(tier_kind) == 1);
  auto tiers =
      body.CreateVector(reinterpret_cast<const uint8_t*>(plan.chunk_tiers.data()), plan.chunk_tiers.size());
  auto lease = held.empty() ? flatbuffers::Offset<flatbuffers::Vector<uint8_t>>()
                            : body.CreateVector(held.bytes.data(), held.bytes.size());
  return wire::CreateLookupAnswer(body, plan.requested_chunks, plan.found_chunks, plan.found_tokens,
                                  plan.usable_tokens, tiers, lease, plan.first_token);
}

} // namespace terrace
