// What may be written to a tier below: the state of its device, the rule of admission and the budget.
//
// Pure: the write-through actor asks the tier and the policy what this class wants to know. Used by one thread at a time.
#pragma once

#include "base/ids.hpp"
#include "tier/policy/policy_messages.hpp"
#include "tier/tier_config.hpp"
#include "transfer/write_plan.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace terrace {

/// Whether host memory may have objects that a tier below lacks: then loads offer it again what they read there. Set by
/// the write-through, read on any thread.
using offers_again = std::atomic<bool>;

class write_admission {
 public:
  /// Of a tier that also gets what stores bring (`write_new`). Null: it is offered nothing again, though it may lack what it
  /// could not write.
  static std::shared_ptr<offers_again> looks_of(const admission_rules& rules, bool write_new) {
    if (!write_new || rules.rule == admission_rule::always)
      return nullptr;
    return std::make_shared<offers_again>(rules.rule == admission_rule::seen_twice);
  }

  /// `service`, `looks`: may be null.
  write_admission(tier_kind tier, const admission_rules& rules,
                  std::shared_ptr<const tier_availability> service, std::shared_ptr<offers_again> looks,
                  write_budget::time_point now)
      : tier_(tier), rules_(rules), service_(std::move(service)), looks_(std::move(looks)),
        budget_(rules.budget, now) {}

  /// The device takes writes.
  bool in_service() const { return !service_ || service_->writes(); }
  /// Some objects may be refused: the tier is asked first what it already has.
  bool may_refuse() const { return rules_.rule != admission_rule::always || rules_.budget.limited(); }
  /// The question for the policy depends on the room in the tier.
  bool asks_room() const { return rules_.rule == admission_rule::beats_victim; }

  /// Which objects the policy is asked about; nullopt: all are admitted. `room_bytes`: what fits without eviction.
  std::optional<admit_request> question(write_plan& plan, uint64_t room_bytes) {
    if (rules_.rule == admission_rule::always)
      return std::nullopt;
    auto asked = plan.admission(tier_, rules_.rule, room_bytes);
    if (asked.entries.empty())
      return std::nullopt;
    lacks(); // the tier is full, or the rule is not fulfilled yet
    return asked;
  }

  /// Takes the bytes of the wanted objects from the budget. Returns how many objects are refused.
  uint64_t pay(write_plan& plan, write_budget::time_point now) { return plan.pay(budget_, now); }
  void set_budget(const write_rates& rates, write_budget::time_point now) {
    rules_.budget = rates;
    budget_.set(rates, now);
  }
  /// At the end of a passage: its unspent bytes return to the budget.
  void ended(const write_plan& plan) { plan.return_unspent(budget_); }

  /// From now on the tier may lack objects of host memory.
  void lacks() {
    if (looks_)
      looks_->store(true, std::memory_order_relaxed);
  }

 private:
  tier_kind tier_;
  admission_rules rules_;
  std::shared_ptr<const tier_availability> service_;
  std::shared_ptr<offers_again> looks_;
  write_budget budget_;
};

} // namespace terrace
