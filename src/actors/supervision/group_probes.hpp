// The counters of a trust group.
#pragma once

#include "base/eviction_types.hpp"
#include "metrics/client_probe.hpp"
#include "metrics/disk_probe.hpp"
#include "metrics/remote_probe.hpp"
#include "metrics/request_probe.hpp"
#include "metrics/tier_probe.hpp"
#include "tier/objects/event_log.hpp"
#include "tier/quota/tenant_states.hpp"
#include "tier/search/read_meter.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace terrace {

// Passes the ages of accesses to the tiers' probes, and those of evicted objects to the record of departures.

/// Used by the policy's thread only.
class age_probes final : public age_observer {
 public:
  /// Null: the tier's ages are not counted.
  void set(tier_number tier, std::shared_ptr<metrics::tier_probe> probe) {
    probes_.at(tier) = std::move(probe);
  }
  /// Null: nobody asks for the age of an evicted object.
  void keep_for(std::shared_ptr<event_log> log) { log_ = std::move(log); }
  void reused(tier_number tier, std::chrono::milliseconds after, size_t entries) override {
    if (auto& probe = probes_[tier])
      probe->reused(after, entries);
  }
  void evicted(tier_number tier, entry_key key, std::chrono::milliseconds age) override {
    if (auto& probe = probes_[tier])
      probe->unused_until_evicted(age);
    if (log_)
      log_->departures().was_unused(key, static_cast<tier_kind>(tier),
                                    std::chrono::duration_cast<std::chrono::seconds>(age));
  }

 private:
  std::array<std::shared_ptr<metrics::tier_probe>, tiers_max> probes_;
  std::shared_ptr<event_log> log_;
};

struct remote_probes {
  std::shared_ptr<metrics::tier_probe> tier = std::make_shared<metrics::tier_probe>();
  std::shared_ptr<metrics::remote_probe> store = std::make_shared<metrics::remote_probe>();
  std::shared_ptr<read_meter> meter = std::make_shared<read_meter>();
};

/// The probes of a group; registered with the exposition by their creator.
struct group_probes {
  std::shared_ptr<metrics::tier_probe> host = std::make_shared<metrics::tier_probe>();
  std::shared_ptr<metrics::tier_probe> disk_tier = std::make_shared<metrics::tier_probe>();
  std::shared_ptr<metrics::tier_probe> gpu_tier = std::make_shared<metrics::tier_probe>();
  std::array<remote_probes, remote_tiers.size()> remotes;
  std::shared_ptr<read_meter> disk_meter = std::make_shared<read_meter>(); ///< meter of the disk tier
  std::shared_ptr<tenant_states> host_tenants = std::make_shared<tenant_states>();
  std::shared_ptr<tenant_states> disk_tenants = std::make_shared<tenant_states>();
  /// A probe without lines.
  std::shared_ptr<metrics::shadow_probe> shadow = std::make_shared<metrics::shadow_probe>();
  std::vector<metrics::path_probes> paths =
      std::vector<metrics::path_probes>(1); ///< parallel to the disk's files
  std::shared_ptr<metrics::client_probe> clients = std::make_shared<metrics::client_probe>();
  std::shared_ptr<metrics::request_probe> requests = std::make_shared<metrics::request_probe>();
  std::shared_ptr<metrics::resp_probe> resp = std::make_shared<metrics::resp_probe>();
};

} // namespace terrace
