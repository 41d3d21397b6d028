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
  uint64_t waiting_requests = 0; ///< requests that wait because the tenant is at its bound
  uint64_t refused = 0;          ///< requests refused since the daemon started
};

struct tenant_status {
  std::string name;    ///< name of the quota; a salt is never shown
  uint32_t number = 0; ///< number of a tenant by rule, from 1; 0: a listed tenant, or a rule
  bool rule = false;   ///< the entry is a rule: its bytes are those of all its tenants
  std::vector<tenant_tier> tiers;
};

/// An amount in bytes, or in percent of the tier.
struct quota_amount {
  uint64_t value = 0;
  bool percent = false;
};

struct quota_change {
  std::string name; ///< name of the quota
  std::string tier; ///< "host" or "disk"
  std::optional<quota_amount> max;
  std::optional<quota_amount> guaranteed;
  bool unlimited = false; ///< removes the upper bound; do not set `max` as well
};

} // namespace terrace::client
