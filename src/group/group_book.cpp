#include "group/group_book.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

// ---- spaces ----

open_space_answer group_book::answer(const open_space_request& request) {
  auto opened = spaces_.open(request.spec);
  if (!opened)
    return {opened.error(), nullptr};
  return {{}, std::move(*opened)};
}

idle_spaces_answer group_book::answer(const idle_spaces_request&) {
  return {{}, spaces_.idle(empty_spaces_request::spaces_max), spaces_.known()};
}

forget_spaces_answer group_book::answer(const forget_spaces_request& request) {
  return {{}, spaces_.forget(request.empty)};
}

reserve_spaces_answer group_book::answer(const reserve_spaces_request& request) {
  reserve_spaces_answer answer;
  for (const digest& fingerprint : request.fingerprints)
    answer.ids.push_back(spaces_.reserve(fingerprint).value_or(space_id{}));
  return answer;
}

// ---- leases ----

void group_book::take(const add_lease_notice& notice) {
  leases_.add(notice.id, notice.owner, notice.added);
  notices_->heard(1);
}

void group_book::take(const end_lease_notice& notice) {
  leases_.end(notice.id, notice.owner);
  notices_->heard(1);
}

use_lease_answer group_book::answer(const use_lease_request& request) const {
  if (auto found = leases_.find(request.id))
    return {{}, std::move(found)};
  return {{errc::gone, "no such lease in this trust group: it was released or revoked, or its owner ended"},
          nullptr};
}

mark_revoked_answer group_book::answer(const mark_revoked_request& request) {
  if (leases_.mark_revoked(request.id)) {
    if (auto pinned = pins_.remove(request.id))
      forget_pin(pinned);
    if (auto held = holds_.end(request.id)) {
      end_hold(std::move(held));
      sessions_changed();
    }
    return {};
  }
  return {{errc::not_found, "no such lease in this trust group: expected the id of one that is listed"}};
}

/// Called when a pin has ended.
void group_book::forget_pin(const lease_ptr& pinned) {
  leases_.end(pinned->id, connection_id{});
  if (probe_)
    probe_->pins_are(pins_.size(), pins_.bytes());
}

pin_answer group_book::answer(const pin_request& request) {
  auto replaced = pins_.add(request.what, request.prompt, request.bytes_max);
  if (!replaced)
    return {replaced.error()};
  if (*replaced)
    leases_.end((*replaced)->id, connection_id{});
  leases_.add(request.what->id, connection_id{}, request.what);
  if (probe_)
    probe_->pins_are(pins_.size(), pins_.bytes());
  return {};
}

unpin_answer group_book::answer(const unpin_request& request) {
  auto pinned = pins_.remove(request.in, request.prompt);
  if (!pinned)
    return {};
  forget_pin(pinned);
  return {{}, 1, pinned->bytes};
}

leases_answer group_book::answer(const leases_request& request) const {
  return {{}, leases_.size(), leases_.list(request.after, request.count_max)};
}

// ---- lookups ----

begin_lookup_answer group_book::answer(const begin_lookup_request& request) {
  auto begun = lookups_.begin(request.id, request.context);
  return {begun ? error{} : begun.error()};
}

void group_book::await(const await_lookup_request& request, std::function<void(await_lookup_answer)> done) {
  lookups_.await(request.id, request.context,
                 [done = std::move(done)](const error& failure, const lookup_outcome_ptr& found) {
                   done({failure, found});
                 });
}

// ---- sessions ----

void group_book::take(const end_owner_notice& notice) {
  leases_.end(notice.owner);
  sessions_.end(notice.owner);
  stored_tails_.end(notice.owner);
  sessions_changed();
}

open_session_answer group_book::answer(const open_session_request& request) {
  tail_reference tail;
  if (request.what.state)
    tail = refer_to(request.what.state->saved());
  sessions_.open(request.what, std::move(tail));
  sessions_changed();
  return {};
}

use_session_answer group_book::answer(const use_session_request& request) {
  holds_.touch(request.id);
  auto found = sessions_.use(request.id, request.tokens);
  if (!found)
    return {found.error(), {}};
  if (const auto* holds = holds_.find(request.id))
    found->held_chunks = holds->host_chunks;
  return {{}, std::move(*found)};
}

save_session_answer group_book::answer(const save_session_request& request) {
  auto outcome =
      request.hold ? save_end(request) : sessions_.save(request.id, request.generation, request.after);
  if (probe_ && outcome == turn_outcome::saved && !request.hold)
    probe_->session_turn();
  save_session_answer answer{{}, outcome, {}};
  if (request.hold && outcome == turn_outcome::saved)
    answer.unheld = keep_hold(request.id, *request.hold);
  sessions_changed();
  return answer;
}

/// Returns a reference to the tail of the turn, or an empty one if the turn has no tail.
tail_reference group_book::refer_to(const saved_turn_ptr& saved) {
  if (!saved || saved->tail_tokens == 0)
    return {};
  return tails_.refer(saved->in, saved->key, tail_referrer::session);
}

turn_outcome group_book::save_end(const save_session_request& request) {
  const saved_turn_ptr& saved = request.after->saved();
  auto outcome = sessions_.save_end(request.id, request.generation, request.after, refer_to(saved));
  if (saved && outcome == turn_outcome::saved)
    stored_tails_.saved(saved->in->id, saved->key);
  return outcome;
}

refer_tail_answer group_book::answer(const refer_tail_request& request) {
  stored_tails_.add(request.owner, request.in, request.key);
  sessions_changed();
  return {};
}

// ---- prompts ----

save_prompt_answer group_book::answer(const save_prompt_request& request) {
  const saved_turn& end = request.what->end;
  tail_reference tail;
  if (end.tail_tokens != 0)
    tail = tails_.refer(end.in, end.key, tail_referrer::prompt);
  auto added = prompts_.add(request.what, std::move(tail));
  stored_tails_.saved(end.in->id, end.key);
  prompts_changed();
  return {added ? error{} : added.error(), prompts_.size(), prompts_.bytes()};
}

find_prompt_answer group_book::answer(const find_prompt_request& request) {
  return {{}, prompts_.find(request.in, request.key)};
}

forget_prompts_answer group_book::answer(const forget_prompts_request& request) {
  forget_prompts_answer answer{{}, prompts_.forget(request.in)};
  prompts_changed();
  return answer;
}

void group_book::prompts_changed() {
  if (!probe_)
    return;
  probe_->prompts_are(prompts_.size(), prompts_.bytes(), prompts_.evicted());
  probe_->tails_are(tails_.size());
}

// ---- what sessions hold ----

/// Holds the lease for the session; colder sessions give up theirs if there is too little room. Returns the
/// reason if nothing is held.
std::string group_book::keep_hold(const session_id& of, const session_hold& hold) {
  // bytes of leases that end later or on another thread: until then the account counts them
  uint64_t ending = 0;
  if (auto before = holds_.end(of))
    ending += end_now(std::move(before));
  if (!hold.what)
    return {};
  if (hold.host_bytes > hold.bytes_max) {
    if (probe_)
      probe_->session_unheld();
    return "its chunks have " + std::to_string(hold.host_bytes) + " bytes of host memory: expected at most " +
           std::to_string(hold.bytes_max) + " of all held sessions (lease.session_percent)";
  }
  holds_.replace(of, hold.what, hold.host_bytes, hold.host_chunks);
  leases_.add(hold.what->id, connection_id{}, hold.what);
  cool(of, [&](uint64_t, uint64_t counted) {
    ending += counted;
    return holds_.host_bytes() <= hold.bytes_max + ending;
  });
  return {};
}

yield_holds_answer group_book::answer(const yield_holds_request& request) {
  yield_holds_answer answer;
  cool(request.session, [&](uint64_t freed, uint64_t) {
    answer.bytes += freed;
    return answer.bytes >= request.bytes;
  });
  sessions_changed();
  return answer;
}

/// Ends the holds of the coldest sessions except `except`, and queues them for demotion, until `enough`
/// returns true. `enough` receives the bytes that the last session held and how many of them the account
/// still counts.
template <class Enough>
void group_book::cool(const session_id& except, Enough&& enough) {
  uint64_t freed = 0, counted = 0;
  for (size_t others = 0; !enough(freed, counted); ++others) {
    auto coldest = holds_.end_coldest(except);
    if (!coldest)
      return;
    freed = counted = coldest->host_bytes;
    const lease& was = *coldest->what;
    assert(was.owner == connection_id{} && demotions_.size() <= demotions_max);
    if (demotions_.size() < demotions_max)
      demotions_.push_back({was.in, std::make_shared<const std::vector<digest>>(was.chunks), was.before});
    else
      demoted(false);
    if (others < ended_at_once_max)
      counted = end_now(std::move(coldest->what));
    else
      end_hold(std::move(coldest->what));
  }
}

/// Ends a hold. Returns how many bytes of host memory the account still counts, because a lease on many
/// objects ends on another thread.
uint64_t group_book::end_now(lease_ptr held) {
  leases_.end(held->id, connection_id{});
  bool many = std::ranges::any_of(
      held->held, [](const tier_hold& one) { return one.held->places().size() >= object_hold::many_places; });
  return many ? host_bytes_of(*held) : 0;
}

void group_book::end_hold(lease_ptr held) {
  leases_.end(held->id, connection_id{});
  ended_holds_.push_back(std::move(held));
}

demoted_chunks group_book::next_demotion() {
  if (demotions_.empty())
    return {};
  demoted_chunks next = std::move(demotions_.front());
  demotions_.pop_front();
  return next;
}

void group_book::demoted(bool below) {
  if (probe_)
    probe_->session_demoted(below);
}

close_session_answer group_book::answer(const close_session_request& request) {
  bool held = holds_.find(request.id) != nullptr;
  bool closed = sessions_.close(request.id);
  sessions_changed();
  return {{}, closed, held};
}

sessions_answer group_book::answer(const sessions_request& request) const {
  sessions_answer all{
      {}, sessions_.size(), sessions_.bytes(), sessions_.evicted(), holds_.size(), holds_.host_bytes(), {}};
  auto reports = request.only ? sessions_.one(*request.only) : sessions_.list(request.count_max);
  for (session_report& one : reports) {
    all.listed.push_back({std::move(one)});
    if (const auto* held = holds_.find(all.listed.back().what.id)) {
      all.listed.back().held_tokens = tokens_of(*held->what);
      all.listed.back().held_bytes = held->what->bytes;
    }
  }
  return all;
}

/// Called after each change of the sessions: sessions that have ended give up what they held.
void group_book::sessions_changed() {
  for (const session_id& ended : sessions_.take_ended())
    if (auto held = holds_.end(ended))
      end_hold(std::move(held));
  if (!probe_)
    return;
  probe_->sessions_are(sessions_.size(), sessions_.bytes(), sessions_.evicted());
  probe_->tails_are(tails_.size());
  probe_->sessions_hold(holds_.size(), holds_.host_bytes());
}

group_report group_book::answer(const group_status_request&) const {
  group_report report;
  report.spaces = spaces_.size();
  report.leases = leases_.size();
  report.sessions = sessions_.size();
  report.session_bytes = sessions_.bytes();
  report.open_spaces = spaces_.list(protocol::status_spaces_max);
  return report;
}

} // namespace terrace
