// Reads and writes quotas and tenants on the wire.
#pragma once

#include "base/tier_properties.hpp"
#include "index/tenant_quota.hpp"
#include "protocol/terrace_generated.h"
#include "tier/messages.hpp"

#include <string>
#include <vector>

namespace terrace {

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

} // namespace terrace
