// The values that metrics show of the tenants of one tier: a line for each quota.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace terrace {

// A tenant in one tier, for status.

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

/// The values of one quota in one tier; a rule has the sums of all its tenants. The tier writes them.
struct quota_gauges {
  std::atomic<uint64_t> used_bytes{0};
  std::atomic<uint64_t> max_bytes{0}; ///< UINT64_MAX: no bound
  std::atomic<uint64_t> guaranteed_bytes{0};
  std::atomic<uint64_t> waiting{0};
  std::atomic<uint64_t> refused{0};
};

/// The gauges by the names of quotas, so there are as many lines as the operator has configured. Safe on any thread.
class tenant_states {
 public:
  std::shared_ptr<quota_gauges> line(const std::string& name) {
    std::lock_guard lock(mutex_);
    auto& found = lines_[name];
    if (!found)
      found = std::make_shared<quota_gauges>();
    return found;
  }
  /// Keeps the quotas for which `wanted` (name) is true.
  template <class Wanted>
  void keep(Wanted&& wanted) {
    std::lock_guard lock(mutex_);
    std::erase_if(lines_, [&](const auto& line) { return !wanted(line.first); });
  }
  std::map<std::string, std::shared_ptr<const quota_gauges>> lines() const {
    std::lock_guard lock(mutex_);
    return {lines_.begin(), lines_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<quota_gauges>> lines_;
};

} // namespace terrace
