// The knowledge of a trust group's policies: the entries of its tiers, their accesses, and the inferences in progress.
//
// Pure: the policy's actor passes messages to this class. Used by one thread at a time.
#pragma once

#include "policy/eviction_tracker.hpp"
#include "policy/open_requests.hpp"
#include "tier/messages.hpp"
#include "tier/objects/check_messages.hpp"
#include "tier/objects/object_source.hpp"
#include "tier/policy/open_inferences.hpp"
#include "tier/policy/policy_clock.hpp"
#include "tier/policy/policy_messages.hpp"

#include <deque>
#include <vector>

namespace terrace {

// The accesses of inferences to their chains, recorded in the policy in parts of bounded size.

/// A short chain is recorded at once; a long one in steps, between which the policy handles other events. Pure; used
/// by one thread at a time.
class chain_uses {
 public:
  /// Objects recorded in a step: less than a millisecond.
  static constexpr size_t step_objects = 2'048;
  /// While this many objects wait, only the beginning of a further long chain is recorded: late records are
  /// of little use, and the sender does not wait for them.
  static constexpr size_t waiting_objects_max = 4 << 20;

  explicit chain_uses(size_t at_once = step_objects) : at_once_(at_once) {}

  /// Begins a request for these objects, root first, and records it if they are few. Otherwise call `step`
  /// until it returns false.
  request_number begin(eviction_tracker& tracker, object_source objects, const request_hints& hints,
                       policy_time now);

  /// Records the next part. Returns false if nothing is left to do.
  bool step(eviction_tracker& tracker, policy_time now);
  bool idle() const { return waiting_.empty(); }

 private:
  /// The names of objects in the order of the tracker's chain: states of trailing pools, the last first, then
  /// the other objects, the first first.
  struct chain {
    std::vector<entry_key> states; ///< in order, the first first
    std::vector<entry_key> others;
    size_t size() const { return states.size() + others.size(); }
    std::vector<entry_key> part(size_t first, size_t count) const;
  };
  struct use {
    object_source objects;
    long_request request;
    chain names;
    size_t named = 0; ///< objects whose names are in the chain
    size_t found = 0; ///< names passed to `find_part`
    size_t used = 0;  ///< names passed to `use_part`, from the end
  };
  static void name(const object_source& objects, size_t first, size_t count, chain& into);

  size_t at_once_;
  size_t waiting_objects_ = 0;
  std::deque<use> waiting_;
};

/// The seed of policies. It is fixed, so that the same events have the same victims, and equal to the
/// simulator's first seed.
constexpr uint64_t policy_seed = 1;

class group_policies {
 public:
  /// `remember` also keeps entries that are evicted from all tiers, for admission rules that count accesses.
  /// `ages` receives the ages of accesses, and must outlive this; null: nobody asks.
  explicit group_policies(clock_source clock = clock_source::steady, bool remember = false,
                          age_observer* ages = nullptr);

  /// The policies that a tier may have.
  static std::span<const std::string_view> names() { return eviction_policy_names(); }

  /// Adds a tier with this policy. Errors: those of `eviction_tracker::set_policy`.
  result<void> add_tier(tier_kind tier, const std::string& policy);
  set_policy_answer set_policy(const set_policy_request& request);

  void apply(const policy_notes& notes);
  void apply_restored(const restored_request& restored);

  /// Has no effect for an inference that has begun. The accesses are recorded at once if they are few;
  /// otherwise `record_more` continues until it returns false.
  void begin(const inference_begin& begun);
  bool recording() const { return !chains_.idle(); }
  bool record_more() { return chains_.step(tracker_, clock_.now()); }
  void end(const inference_end& ended);

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
  size_t expected_ =
      0; ///< number of entries, with those that are being restored, for which buckets are made; 0: none
};

} // namespace terrace
