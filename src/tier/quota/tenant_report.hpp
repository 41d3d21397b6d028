// A tenant in one tier, for status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace terrace {

struct tenant_report {
  std::string name;     ///< name of its quota
  uint32_t number = 0;  ///< number of a tenant within its rule; 0: a listed tenant, or a rule itself
  bool rule = false;    ///< a rule: bytes are those of all its tenants together
  uint64_t tenants = 0; ///< tenants of the rule that have something in the tier
  uint64_t used_bytes = 0;
  std::optional<uint64_t> max_bytes;
  uint64_t guaranteed_bytes = 0;
  uint64_t waiting = 0;
  uint64_t refused = 0;

  /// Returns the name to show: "batch", or "batch#3".
  std::string shown() const { return number == 0 ? name : name + "#" + std::to_string(number); }
};

/// The number of tenants of one tier that status shows.
constexpr size_t tenants_shown_max = 1'024;

} // namespace terrace
