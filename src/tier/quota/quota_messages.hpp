// Messages about quotas of tenants, which are changed at run time.
#pragma once

#include "index/tenant_quota.hpp"

#include <vector>

namespace terrace {

/// Sent to a tier after the group's `tenant_directory` has changed.
struct quotas_changed_notice {};

/// Sent to the supervisor after a reload: the quotas of each group, in the order of `groups`.
struct quotas_notice {
  std::vector<std::vector<tenant_quota>> of_groups;
};

} // namespace terrace
