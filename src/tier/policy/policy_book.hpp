// The knowledge of a trust group's policies: the entries of its tiers, their accesses, and the inferences in progress.
//
// Pure: the policy's actor passes messages to this class. Used by one thread at a time.
#pragma once

#include "policy/eviction_tracker.hpp"
#include "tier/messages.hpp"
#include "tier/objects/check_messages.hpp"
#include "tier/policy/chain_uses.hpp"
#include "tier/policy/open_inferences.hpp"
#include "tier/policy/policy_clock.hpp"
#include "tier/policy/policy_messages.hpp"

namespace terrace {

/// The seed of policies. It is fixed, so that the same events have the same victims, and equal to the
/// simulator's first seed.
constexpr uint64_t policy_seed = 1;

class policy_book {
 public:
  /// `remember` also keeps entries that are evicted from all tiers, for admission rules that count accesses.
  /// `ages` receives the ages of accesses, and must outlive this; null: nobody asks.
  explicit policy_book(clock_source clock = clock_source::steady, bool remember = false,
                       age_observer* ages = nullptr);

  /// Adds a tier with this policy. Errors: those of `eviction_tracker::set_policy`.
  result<void> add_tier(tier_kind tier, const std::string& policy);
  set_policy_answer set_policy(const set_policy_request& request);

  void apply(const policy_notes& notes);

  /// Has no effect for an inference that has begun. The accesses are recorded at once if they are few;
  /// otherwise `record_more` continues until it returns false.
  void begin(const inference_begin& what);
  bool recording() const { return !chains_.idle(); }
  bool record_more() { return chains_.step(tracker_, clock_.now()); }
  void end(const inference_end& what);

  victim_answer victims(const victim_request& request);
  admit_answer admit(const admit_request& request);
  policies_report report() const;
  check_answer_texts check(const check_policy_request& request) const;

 private:
  void expect(std::span<const policy_note> notes) const;

  eviction_tracker tracker_;
  open_inferences inferences_;
  chain_uses chains_;
  policy_clock clock_;
};

} // namespace terrace
