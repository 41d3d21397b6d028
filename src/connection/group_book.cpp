#include "connection/group_book.hpp"

#include "protocol/limits.hpp"

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
    return {};
  }
  return {{errc::not_found, "no such lease in this trust group: expected the id of one that is listed"}};
}

/// Of a pin that has ended.
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
  count_sessions();
}

open_session_answer group_book::answer(const open_session_request& request) {
  sessions_.open(request.what);
  count_sessions();
  return {};
}

use_session_answer group_book::answer(const use_session_request& request) {
  auto found = sessions_.use(request.id, request.tokens);
  if (!found)
    return {found.error(), {}};
  return {{}, std::move(*found)};
}

save_session_answer group_book::answer(const save_session_request& request) {
  auto outcome = sessions_.save(request.id, request.generation, request.after);
  if (probe_ && outcome == turn_outcome::saved)
    probe_->session_turn();
  count_sessions();
  return {{}, outcome};
}

close_session_answer group_book::answer(const close_session_request& request) {
  bool closed = sessions_.close(request.id);
  count_sessions();
  return {{}, closed};
}

sessions_answer group_book::answer(const sessions_request& request) const {
  return {{}, sessions_.size(), sessions_.bytes(), sessions_.evicted(), sessions_.list(request.count_max)};
}

void group_book::count_sessions() {
  if (probe_)
    probe_->sessions_are(sessions_.size(), sessions_.bytes(), sessions_.evicted());
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
