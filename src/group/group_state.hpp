// The spaces, leases, lookups and sessions of a trust group by id. The registries that stand alone have accessors; the rest is
// what changes several of them.
//
// Pure: used by one thread at a time.
#pragma once

#include "base/credit_gate.hpp"
#include "group/group_messages.hpp"
#include "group/lease_registry.hpp"
#include "group/lookup_registry.hpp"
#include "group/session_holds.hpp"
#include "group/session_messages.hpp"
#include "group/tail_registry.hpp"
#include "index/space_registry.hpp"
#include "metrics/client_probe.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

class group_state {
 public:
  /// waiting demotions; chunks beyond this limit stay in their tier
  static constexpr size_t demotions_max = 1'024;

  /// `notices`: credit of the notices that leases begin and end; never null. `probe`: null if sessions are
  /// not counted. `held`: the account charged for what sessions hold; null if it is not counted.
  group_state(const space_registry::options& spaces, std::shared_ptr<credit_gate> notices,
              const session_bounds& sessions = {}, std::shared_ptr<metrics::client_probe> probe = nullptr,
              account_ptr held = nullptr, const prompt_bounds& prompts = {})
      : spaces_(spaces), sessions_(sessions), prompts_(prompts), holds_(std::move(held)),
        notices_(std::move(notices)), probe_(std::move(probe)) {}

  space_registry& spaces() { return spaces_; }
  lookup_registry& lookups() { return lookups_; }
  const lease_registry& leases() const { return leases_; }
  const pin_registry& pins() const { return pins_; }
  const session_table& sessions() const { return sessions_; }
  const session_holds& holds() const { return holds_; }
  prompt_registry& prompts() { return prompts_; }
  tail_registry& tails() { return tails_; }

  void apply(const add_lease_notice& notice);
  void apply(const end_lease_notice& notice);
  void apply(const end_owner_notice& notice);
  mark_revoked_answer answer(const mark_revoked_request& request); ///< its holder is parked
  pin_answer answer(const pin_request& request);
  unpin_answer answer(const unpin_request& request);

  // ---- sessions: those with an actor tell what they do; of the others the group has the values ----

  open_session_answer answer(const open_session_request& request);
  /// `gone`, or no error.
  error find_session(const session_id& id) const;
  /// Gives the session to an actor. Precondition: it exists and is parked.
  session take_session(const session_id& id);
  /// The actor has given it back.
  void park(const session_id& id, session turns);
  /// The actor has ended without giving it back.
  void lost(const session_id& id);
  use_session_answer answer(const session_used& report);

  /// Sessions that are colder than one of them give up what they hold.
  struct cooling {
    session_id warm;
    uint64_t bytes_max = UINT64_MAX; ///< until all sessions hold at most so much
    uint64_t wanted = 0;             ///< and until so much has been given up
    uint64_t freed = 0;
    /// bytes of leases that end later or on another thread: until then the account counts them
    uint64_t ending = 0;
    size_t sessions = 0; ///< that have given up what they held
  };
  /// `colder`: what has to be given up now.
  save_session_answer answer(session_saved& report, cooling& colder);
  /// Returns the session that has to be parked before this can go on; none: it is done.
  std::optional<session_id> evict_coldest(cooling& colder);
  /// The session that has to be parked before its lease can be revoked.
  std::optional<session_id> holder(const lease_id& id) const;
  /// Precondition: the session is parked, or there is none.
  close_session_answer answer(const close_session_request& request);
  sessions_answer answer(const sessions_request& request) const;
  refer_tail_answer answer(const refer_tail_request& request);
  save_prompt_answer answer(const save_prompt_request& request);
  forget_prompts_answer answer(const forget_prompts_request& request);

  struct ended_sessions {
    std::vector<lease_ptr> holds;   ///< leases that sessions no longer hold
    std::vector<session_id> actors; ///< sessions that have ended and have an actor, which has to end, too
  };
  /// The actor calls this after each notice and request, and destroys the leases where the work of ending them may be done.
  ended_sessions take_ended() { return std::exchange(ended_, {}); }
  /// Returns the next chunks that sessions gave up and that are to be demoted, in order; `chunks` is null if
  /// there are none.
  demoted_chunks next_demotion();
  /// Reports that the chunks of `next_demotion` are on a tier below, as far as possible. `below` is false if
  /// there is no such tier.
  void demoted(bool below);

  void tail_removed() { ///< the tail has been removed from the tiers that had it
    if (probe_)
      probe_->sessions.tail_removed();
  }

  /// Recounts the next sessions (group_check.cpp).
  check_sessions_answer answer(const check_sessions_request& request);

 private:
  void sessions_changed();
  void end_hold(lease_ptr held);
  uint64_t end_now(lease_ptr held);
  friend struct damaged_groups; ///< tests damage it
  tail_reference refer_to(const saved_turn_ptr& saved);
  void prompts_changed();
  bool save_end(const session_saved& report);
  void keep_hold(session_saved& report, cooling& colder);
  void give_up(lease_ptr held, uint64_t host_bytes, cooling& colder);
  void forget_pin(const lease_ptr& pinned);

  space_registry spaces_;
  lease_registry leases_;
  pin_registry pins_;
  lookup_registry lookups_;
  tail_registry tails_; ///< destroyed after everything that refers to tails
  stored_tails stored_tails_{tails_};
  session_table sessions_;
  prompt_registry prompts_;
  session_holds holds_;
  ended_sessions ended_;
  std::deque<demoted_chunks> demotions_;
  std::shared_ptr<credit_gate> notices_;
  std::shared_ptr<metrics::client_probe> probe_;
};

reserve_spaces_answer reserve(space_registry& spaces, const reserve_spaces_request& request);
use_lease_answer use(const lease_registry& leases, const use_lease_request& request);
begin_lookup_answer begin(lookup_registry& lookups, const begin_lookup_request& request);

/// What status shows of the group.
group_report report_of(group_state& group);

// Checks: compares the leases of a group with pins, sessions and their owners (group_check.cpp).

check_group_answer check_leases(group_state& group, const check_group_request& request);
check_answer_texts check_owner(group_state& group, const check_owner_request& request);

} // namespace terrace
