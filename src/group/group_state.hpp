// The spaces, leases, lookups and sessions of a trust group by id, and the answers of its actor.
//
// Pure: used by one thread at a time.
#pragma once

#include "base/credit_gate.hpp"
#include "group/check_messages.hpp"
#include "group/group_messages.hpp"
#include "group/lease_registry.hpp"
#include "group/lookup_messages.hpp"
#include "group/pin_registry.hpp"
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
  /// leases that one request ends at once; the others end after it
  static constexpr size_t ended_at_once_max = 8;

  /// `notices`: credit of the notices that leases begin and end; never null. `probe`: null if sessions are
  /// not counted. `held`: the account charged for what sessions hold; null if it is not counted.
  group_state(const space_registry::options& spaces, std::shared_ptr<credit_gate> notices,
              const session_bounds& sessions = {}, std::shared_ptr<metrics::client_probe> probe = nullptr,
              account_ptr held = nullptr, const prompt_bounds& prompts = {})
      : spaces_(spaces), sessions_(sessions), prompts_(prompts), holds_(std::move(held)),
        notices_(std::move(notices)), probe_(std::move(probe)) {}

  open_space_answer answer(const open_space_request& request);
  idle_spaces_answer answer(const idle_spaces_request& request);
  forget_spaces_answer answer(const forget_spaces_request& request);
  reserve_spaces_answer answer(const reserve_spaces_request& request);

  void apply(const add_lease_notice& notice);
  void apply(const end_lease_notice& notice);
  void apply(const end_owner_notice& notice);
  use_lease_answer answer(const use_lease_request& request) const;
  mark_revoked_answer answer(const mark_revoked_request& request); ///< its holder is parked
  leases_answer answer(const leases_request& request) const;
  pin_answer answer(const pin_request& request);
  unpin_answer answer(const unpin_request& request);

  begin_lookup_answer answer(const begin_lookup_request& request);
  void apply(const finish_lookup_notice& notice) {
    lookups_.finish(notice.id, notice.context, notice.outcome);
  }
  /// Calls `done` when the lookup is answered or dropped, or when the request ends; at once if that has
  /// happened.
  void await(const await_lookup_request& request, std::function<void(await_lookup_answer)> done);
  cancel_lookup_answer answer(const cancel_lookup_request& request) {
    return {{}, lookups_.cancel(request.id)};
  }
  /// Answers the waiting requests that have ended.
  void sweep() { lookups_.sweep(); }

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
  find_prompt_answer answer(const find_prompt_request& request);
  forget_prompts_answer answer(const forget_prompts_request& request);

  /// Returns the leases that sessions no longer hold. The actor calls this after each notice and request, and
  /// destroys them where the work of ending them may be done.
  std::vector<lease_ptr> take_ended_holds() { return std::exchange(ended_holds_, {}); }
  /// Returns the sessions that have ended and have an actor, which has to end, too.
  std::vector<session_id> take_ended_actors() { return std::exchange(ended_actors_, {}); }
  /// Returns the next chunks that sessions gave up and that are to be demoted, in order; `chunks` is null if
  /// there are none.
  demoted_chunks next_demotion();
  /// Reports that the chunks of `next_demotion` are on a tier below, as far as possible. `below` is false if
  /// there is no such tier.
  void demoted(bool below);

  /// Returns the next tail without references. The actor calls this after each notice and request, and
  /// removes the tail from the tiers while `tails` still allows it. `in` is null if there is none.
  unreferred_tail next_unreferred() { return tails_.next_unreferred(); }
  void tail_removed() { ///< the tail has been removed from the tiers that had it
    if (probe_)
      probe_->tail_removed();
  }

  const tail_registry& tails() const { return tails_; }
  const session_table& sessions() const { return sessions_; }
  const session_holds& holds() const { return holds_; }
  const prompt_registry& prompts() const { return prompts_; }

  group_report answer(const group_status_request& request) const;

  // ---- checks (group_check.cpp) ----

  check_group_answer answer(const check_group_request& request) const;
  check_answer_texts answer(const check_owner_request& request) const;
  check_sessions_answer answer(const check_sessions_request& request);

 private:
  void sessions_changed();
  void end_hold(lease_ptr held);
  uint64_t end_now(lease_ptr held);
  friend struct damaged_groups; ///< tests damage it
  tail_reference refer_to(const saved_turn_ptr& saved);
  void check_prompts(check_group_answer& out) const;
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
  std::vector<lease_ptr> ended_holds_;
  std::vector<session_id> ended_actors_;
  std::deque<demoted_chunks> demotions_;
  std::shared_ptr<credit_gate> notices_;
  std::shared_ptr<metrics::client_probe> probe_;
};

} // namespace terrace
