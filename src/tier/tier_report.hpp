// The state of a tier for `status`.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "memory/allocator.hpp"
#include "tier/quota/tenant_report.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

struct tier_status_request {};
struct tier_report {
  error failure;
  tier_kind kind = tier_kind::none;
  std::string state = "ready";
  std::string reason;
  std::string allocator;
  std::string policy;
  allocator_usage usage;
  uint64_t room_bytes = 0; ///< free and not kept free ahead of demand: a store of this size evicts nothing
  uint64_t huge_page_bytes = 0, leaving_bytes = 0; ///< in host memory
  std::string notice;
  uint64_t read_bytes_per_s = 0; ///< measured; 0: not known
  uint64_t objects = 0;
  uint64_t held_objects = 0;
  uint64_t waiting = 0;
  uint64_t hits = 0, misses = 0, evictions = 0, bytes_read = 0, bytes_written = 0, errors = 0;
  std::vector<tenant_report> tenants; ///< quotas first
};

} // namespace terrace
