// Requests whose tenant has no room below its bound, in a queue for each tenant: others pass them.
#pragma once

#include "base/request_context.hpp"
#include "tier/objects/residency.hpp"
#include "tier/quota/tenant_quotas.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace terrace {

/// These queues are in front of a tier's allocator. A tenant's requests are served in order of arrival, and none passes
/// one that waits; the queues together have a bound. Room is made in rounds, one at a time in the tier, in which only
/// objects of the tenant leave; tenants take turns. A failed round is repeated when something changes in the tier.
///
/// Pure: used by the actor that has it.
class quota_line {
 public:
  /// `ok`: the bytes are booked. The requester unbooks them once they are charged, or not needed.
  using told = std::function<void(const error&)>;

  struct request {
    tenant_id tenant{};
    uint64_t bytes = 0; ///< physical
    bool may_wait = true;
    context_ptr context; ///< may be null
  };

  /// `quotas` must outlive this object.
  quota_line(tenant_quotas& quotas, size_t waiting_max) : quotas_(quotas), waiting_max_(waiting_max) {}

  /// Answers now or later. Errors: `no_space` (the bound is less, or nothing of the tenant can leave and the
  /// request may not wait, or could wait only for the end of leases), `busy` (the queues are full, or the
  /// request is ahead of demand and others wait), or the error that ended the context.
  void ask(request wanted, told answer);

  /// Names the tenant whose objects should leave next.
  struct round {
    tenant_id tenant{};
    uint64_t missing_bytes = 0; ///< fewer bytes are of no use
    uint64_t wanted_bytes = 0;  ///< this many, if there are as many
    uint64_t inference = 0;     ///< the inference that it is for; 0: unknown
  };
  /// Returns nullopt while a round is in progress, and if none is needed, or if none would succeed now.
  std::optional<round> begin_round();
  /// The round is over: its bytes are credited. `holders` describes what held the bytes in a failed round.
  void end_round(const std::optional<residency::holders>& holders);

  /// Something was freed, became evictable, or the quotas have changed.
  void changed();
  /// Answers requests whose context has ended.
  void sweep();

  size_t waiting() const { return waiting_; }
  bool idle() const { return lines_.empty(); }

 private:
  struct entry {
    request wanted;
    told answer;
  };
  struct tenant_line {
    std::deque<entry> waiting;
    std::optional<residency::holders> failed; ///< result of the last round, if nothing has changed since
  };

  bool serve_first(tenant_line& line);
  void serve(tenant_line& line);
  void serve(tenant_id tenant);
  void serve_all();
  void drop_unused();
  entry take_first(tenant_line& line);
  error refused(const request& wanted, const std::string& why) const;
  bool wants_round(tenant_id tenant, const tenant_line& line) const;

  tenant_quotas& quotas_;
  size_t waiting_max_;
  std::map<tenant_id, tenant_line> lines_; ///< queues of tenants that wait, or have more than their bound
  std::optional<tenant_id> in_round_;
  tenant_id last_{}; ///< the tenant that had the last round
  size_t waiting_ = 0;
};

} // namespace terrace
