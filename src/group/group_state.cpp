#include "group/group_state.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {
/// Leases that one request ends at once; the others end after it.
constexpr size_t ended_at_once_max = 8;
} // namespace

// ---- leases ----

void group_state::apply(const add_lease_notice& notice) {
  leases_.add(notice.id, notice.owner, notice.added);
  notices_->heard(1);
}

void group_state::apply(const end_lease_notice& notice) {
  leases_.end(notice.id, notice.owner);
  notices_->heard(1);
}

mark_revoked_answer group_state::answer(const mark_revoked_request& request) {
  if (leases_.mark_revoked(request.id)) {
    if (auto pinned = pins_.remove(request.id))
      forget_pin(pinned);
    if (const auto* held = holds_.find(request.id)) {
      session* turns = sessions_.parked(held->session);
      holds_.end(held->session);
      if (turns != nullptr)
        end_hold(turns->end_hold());
      sessions_changed();
    }
    return {};
  }
  return {{errc::not_found, "no such lease in this trust group: expected the id of one that is listed"}};
}

/// Called when a pin has ended.
void group_state::forget_pin(const lease_ptr& pinned) {
  leases_.end(pinned->id, connection_id{});
  if (probe_)
    probe_->sessions.pins_are(pins_.size(), pins_.bytes());
}

pin_answer group_state::answer(const pin_request& request) {
  auto replaced = pins_.add(request.lease, request.prompt, request.bytes_max);
  if (!replaced)
    return {replaced.error()};
  if (*replaced)
    leases_.end((*replaced)->id, connection_id{});
  leases_.add(request.lease->id, connection_id{}, request.lease);
  if (probe_)
    probe_->sessions.pins_are(pins_.size(), pins_.bytes());
  return {};
}

unpin_answer group_state::answer(const unpin_request& request) {
  auto pinned = pins_.remove(request.space, request.prompt);
  if (!pinned)
    return {};
  forget_pin(pinned);
  return {{}, 1, pinned->bytes};
}

// ---- sessions ----

void group_state::apply(const end_owner_notice& notice) {
  leases_.end(notice.owner);
  sessions_.end(notice.owner);
  stored_tails_.end(notice.owner);
  sessions_changed();
}

open_session_answer group_state::answer(const open_session_request& request) {
  tail_reference tail;
  if (request.opening.state)
    tail = refer_to(request.opening.state->saved());
  sessions_.open(request.opening, std::move(tail));
  sessions_changed();
  return {};
}

error group_state::find_session(const session_id& id) const {
  if (sessions_.has(id))
    return {};
  return {errc::gone,
          "no such session in this trust group: it was closed, its connection ended, or there were too many; "
          "open one and send the whole prompt"};
}

session group_state::take_session(const session_id& id) {
  auto turns = sessions_.take(id);
  sessions_changed();
  return turns;
}

void group_state::park(const session_id& id, session turns) {
  if (!sessions_.park(id, turns)) // it has ended meanwhile
    if (auto held = turns.end_hold())
      end_hold(std::move(held));
  sessions_changed();
}

void group_state::lost(const session_id& id) {
  sessions_.close(id);
  sessions_changed();
}

use_session_answer group_state::answer(const session_used& report) {
  holds_.touch(report.id);
  if (!sessions_.used(report.id, report.now))
    return {find_session(report.id), {}};
  return {{}, report.found};
}

save_session_answer group_state::answer(session_saved& report, cooling& colder) {
  bool saved = report.with_end ? save_end(report) : sessions_.saved(report.id, report.now);
  if (probe_ && saved && !report.with_end)
    probe_->sessions.session_turn();
  save_session_answer answer{{}, saved ? turn_outcome::saved : turn_outcome::closed, {}};
  if (report.with_end && saved) {
    answer.unheld = report.unheld;
    keep_hold(report, colder);
  }
  sessions_changed();
  return answer;
}

/// Returns a reference to the tail of the turn, or an empty one if the turn has no tail.
tail_reference group_state::refer_to(const saved_turn_ptr& saved) {
  if (!saved || saved->tail_tokens == 0)
    return {};
  return tails_.refer(saved->space, saved->key, tail_referrer::session);
}

bool group_state::save_end(const session_saved& report) {
  const saved_turn_ptr& saved = report.now.saved;
  if (!sessions_.saved_end(report.id, report.now, refer_to(saved)))
    return false;
  if (saved)
    stored_tails_.saved(saved->space->id, saved->key);
  return true;
}

refer_tail_answer group_state::answer(const refer_tail_request& request) {
  stored_tails_.add(request.owner, request.space, request.key);
  sessions_changed();
  return {};
}

// ---- prompts ----

save_prompt_answer group_state::answer(const save_prompt_request& request) {
  const saved_turn& end = request.prompt->end;
  tail_reference tail;
  if (end.tail_tokens != 0)
    tail = tails_.refer(end.space, end.key, tail_referrer::prompt);
  auto added = prompts_.add(request.prompt, std::move(tail));
  stored_tails_.saved(end.space->id, end.key);
  prompts_changed();
  return {added ? error{} : added.error(), prompts_.size(), prompts_.bytes()};
}

forget_prompts_answer group_state::answer(const forget_prompts_request& request) {
  forget_prompts_answer answer{{}, prompts_.forget(request.space)};
  prompts_changed();
  return answer;
}

void group_state::prompts_changed() {
  if (!probe_)
    return;
  probe_->sessions.prompts_are(prompts_.size(), prompts_.bytes(), prompts_.evicted());
  probe_->sessions.tails_are(tails_.size());
}

// ---- what sessions hold ----

/// The session holds what the report says. Colder sessions have to give up theirs if there is too little room.
void group_state::keep_hold(session_saved& report, cooling& colder) {
  holds_.end(report.id);
  if (report.before)
    colder.ending = end_now(std::move(report.before));
  if (!report.unheld.empty() && probe_)
    probe_->sessions.session_unheld();
  const session_hold& hold = report.hold;
  if (!hold.lease)
    return;
  holds_.replace(report.id, {hold.lease->id, hold.host_bytes, tokens_of(*hold.lease), hold.lease->bytes});
  leases_.add(hold.lease->id, connection_id{}, hold.lease);
  colder.warm = report.id;
  colder.bytes_max = hold.bytes_max;
}

std::optional<session_id> group_state::evict_coldest(cooling& colder) {
  auto enough = [&] {
    uint64_t bytes = holds_.host_bytes();
    return colder.freed >= colder.wanted &&
           (bytes <= colder.bytes_max || bytes - colder.bytes_max <= colder.ending);
  };
  while (!enough()) {
    const auto* coldest = holds_.coldest(colder.warm);
    if (coldest == nullptr)
      break;
    session* turns = sessions_.parked(coldest->session);
    if (turns == nullptr)
      return coldest->session;
    uint64_t bytes = coldest->what.host_bytes;
    holds_.end(coldest->session);
    give_up(turns->end_hold(), bytes, colder);
  }
  sessions_changed();
  return std::nullopt;
}

/// Ends the hold of a session that was the coldest, and queues its chunks for demotion.
void group_state::give_up(lease_ptr held, uint64_t host_bytes, cooling& colder) {
  colder.freed += host_bytes;
  assert(held && held->owner == connection_id{} && demotions_.size() <= demotions_max);
  if (demotions_.size() < demotions_max)
    demotions_.push_back(
        {held->space, std::make_shared<const std::vector<digest>>(held->chunks), held->before});
  else
    demoted(false);
  if (colder.sessions++ < ended_at_once_max) {
    colder.ending += end_now(std::move(held));
  } else {
    colder.ending += host_bytes;
    end_hold(std::move(held));
  }
}

std::optional<session_id> group_state::holder(const lease_id& id) const {
  const auto* held = holds_.find(id);
  return held == nullptr ? std::nullopt : std::optional(held->session);
}

/// Ends a hold. Returns how many bytes of host memory the account still counts, because a lease on many
/// objects ends on another thread.
uint64_t group_state::end_now(lease_ptr held) {
  leases_.end(held->id, connection_id{});
  bool many = std::ranges::any_of(
      held->held, [](const tier_hold& one) { return one.held->places().size() >= object_hold::many_places; });
  return many ? host_bytes_of(*held) : 0;
}

void group_state::end_hold(lease_ptr held) {
  leases_.end(held->id, connection_id{});
  ended_.holds.push_back(std::move(held));
}

demoted_chunks group_state::next_demotion() {
  if (demotions_.empty())
    return {};
  demoted_chunks next = std::move(demotions_.front());
  demotions_.pop_front();
  return next;
}

void group_state::demoted(bool below) {
  if (probe_)
    probe_->sessions.session_demoted(below);
}

close_session_answer group_state::answer(const close_session_request& request) {
  bool held = holds_.find(request.id) != nullptr;
  bool closed = sessions_.close(request.id);
  sessions_changed();
  return {{}, closed, held};
}

sessions_answer group_state::answer(const sessions_request& request) const {
  sessions_answer all{
      {}, sessions_.size(), sessions_.bytes(), sessions_.evicted(), holds_.size(), holds_.host_bytes(), {}};
  auto reports = request.only ? sessions_.one(*request.only) : sessions_.list(request.count_max);
  for (session_report& one : reports) {
    all.listed.push_back({std::move(one)});
    if (const auto* held = holds_.find(all.listed.back().report.id)) {
      all.listed.back().held_tokens = held->what.tokens;
      all.listed.back().held_bytes = held->what.bytes;
    }
  }
  return all;
}

/// Called after each change of the sessions: sessions that have ended give up what they held.
void group_state::sessions_changed() {
  for (auto& ended : sessions_.take_ended()) {
    if (auto held = holds_.end(ended.id))
      leases_.end(*held, connection_id{});
    if (!ended.parked)
      ended_.actors.push_back(ended.id);
    else if (auto held = ended.parked->end_hold())
      end_hold(std::move(held));
  }
  if (!probe_)
    return;
  probe_->sessions.sessions_are(sessions_.size(), sessions_.active(), sessions_.bytes(), sessions_.evicted());
  probe_->sessions.tails_are(tails_.size());
  probe_->sessions.sessions_hold(holds_.size(), holds_.host_bytes());
}

// ---- registries that stand alone ----

reserve_spaces_answer reserve(space_registry& spaces, const reserve_spaces_request& request) {
  reserve_spaces_answer answer;
  for (const digest& fingerprint : request.fingerprints)
    answer.ids.push_back(spaces.reserve(fingerprint).value_or(space_id{}));
  return answer;
}

use_lease_answer use(const lease_registry& leases, const use_lease_request& request) {
  if (auto found = leases.find(request.id))
    return {{}, std::move(found)};
  return {{errc::gone, "no such lease in this trust group: it was released or revoked, or its owner ended"},
          nullptr};
}

begin_lookup_answer begin(lookup_registry& lookups, const begin_lookup_request& request) {
  auto begun = lookups.begin(request.id, request.context);
  return {begun ? error{} : begun.error()};
}

group_report report_of(group_state& group) {
  group_report report;
  report.spaces = group.spaces().size();
  report.leases = group.leases().size();
  report.sessions = group.sessions().size();
  report.session_bytes = group.sessions().bytes();
  report.open_spaces = group.spaces().list(group_report::spaces_max);
  report.closed_spaces = group.spaces().closed(SIZE_MAX);
  return report;
}

} // namespace terrace
