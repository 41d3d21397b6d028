// The values that metrics show of the tenants of one tier: a line for each quota.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace terrace {

/// The values of one quota in one tier; a rule has the sums of all its tenants. The tier writes them.
struct quota_gauges {
  std::atomic<uint64_t> used_bytes{0};
  std::atomic<uint64_t> max_bytes{0}; ///< UINT64_MAX: no bound
  std::atomic<uint64_t> guaranteed_bytes{0};
  std::atomic<uint64_t> waiting{0};
  std::atomic<uint64_t> refused{0};
};

/// The gauges by the names of quotas, so there are as many lines as the operator has configured. Safe on any thread.
class tenant_board {
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
