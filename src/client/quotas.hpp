// Quotas of tenants, as returned by `connection::quotas` and in `group_status`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace terrace::client {

struct tenant_tier {
  std::string tier; ///< "host", "disk"
  uint64_t used_bytes = 0;
  std::optional<uint64_t> max_bytes; ///< absent: no bound
  uint64_t guaranteed_bytes = 0;
  uint64_t waiting_requests = 0; ///< because the tenant is at its bound
  uint64_t refused = 0;          ///< requests, since the daemon started
};

struct tenant_status {
  std::string name;    ///< of the quota; no salt is ever shown
  uint32_t number = 0; ///< of a tenant by rule, from 1; 0: a listed tenant, or a rule
  bool rule = false;   ///< a rule: the bytes are those of all its tenants
  std::vector<tenant_tier> tiers;
};

/// Bytes, or percent of the tier.
struct quota_amount {
  uint64_t value = 0;
  bool percent = false;
};

struct quota_change {
  std::string name; ///< of the quota
  std::string tier; ///< "host" or "disk"
  std::optional<quota_amount> max;
  std::optional<quota_amount> guaranteed;
  bool unlimited = false; ///< no upper bound; without `max`
};

} // namespace terrace::client
