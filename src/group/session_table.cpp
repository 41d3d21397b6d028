#include "group/session_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

namespace {

/// The state that all sessions without tokens share.
const session_state_ptr& no_tokens() {
  static const auto nothing = std::make_shared<const session_state>();
  return nothing;
}

} // namespace

void session_table::open(session_opening what, tail_reference tail) {
  assert(!by_id_.contains(what.id) && what.chunk_tokens > 0);
  connection_id owner = what.owner;
  if (!what.state)
    what.state = no_tokens();
  owned& of = owners_[owner];
  auto at = of.sessions.emplace(of.sessions.end());
  at->lengths.commit(what.state->tokens(), what.chunk_tokens);
  by_id_.emplace(what.id, at);
  at->saved = what.state->saved();
  at->tail = std::move(tail);
  at->what = std::move(what);
  count(at);
  count_again(at);
  keep_bounds(owner);
}

result<session_use> session_table::use(const session_id& id, uint64_t tokens) {
  auto found = by_id_.find(id);
  if (found == by_id_.end())
    return fail(errc::gone,
                "no such session in this trust group: it was closed, its connection ended, or there were too "
                "many; open one and send the whole prompt");
  session& one = *found->second;
  touch(found->second);
  if (tokens != 0)
    one.lengths.begin(tokens);
  return session_use{one.what.in, one.generation, one.what.root, one.what.state, one.what.held, one.saved};
}

turn_outcome session_table::save(const session_id& id, uint64_t generation, session_state_ptr after) {
  auto found = by_id_.find(id);
  if (found == by_id_.end())
    return turn_outcome::closed;
  session& one = *found->second;
  if (one.generation != generation)
    return turn_outcome::late;
  ++one.generation;
  one.what.state = std::move(after);
  one.lengths.commit(one.what.state->tokens(), one.what.chunk_tokens);
  touch(found->second);
  count(found->second);
  keep_bounds(one.what.owner);
  return turn_outcome::saved;
}

turn_outcome session_table::save_end(const session_id& id, uint64_t generation, session_state_ptr after,
                                     tail_reference tail) {
  saved_turn_ptr saved = after->saved();
  auto outcome = save(id, generation, std::move(after));
  if (auto found = by_id_.find(id); found != by_id_.end() && outcome == turn_outcome::saved) {
    found->second->saved = std::move(saved);
    replace_tail(found->second, std::move(tail));
  }
  return outcome;
}

bool session_table::close(const session_id& id) {
  auto found = by_id_.find(id);
  if (found == by_id_.end())
    return false;
  erase(found->second);
  return true;
}

void session_table::end(connection_id owner) {
  auto found = owners_.find(owner);
  if (found == owners_.end() || owner == nobody)
    return;
  recount_.reset();
  owned left = std::move(found->second);
  owners_.erase(found);
  owned& kept = owners_[nobody];
  for (auto at = left.sessions.begin(); at != left.sessions.end();) {
    auto next = std::next(at);
    if (at->what.keep) {
      at->what.owner = nobody;
      kept.bytes += at->bytes;
      kept.sessions.splice(kept.sessions.end(), left.sessions, at); // iterators stay valid
    } else {
      bytes_ -= at->bytes;
      forget(*at);
    }
    at = next;
  }
  if (kept.sessions.empty())
    owners_.erase(nobody);
}

std::vector<session_report> session_table::list(size_t count_max) const {
  std::vector<session_report> all;
  all.reserve(std::min(count_max, by_id_.size()));
  for (const auto& [owner, of] : owners_) // `owner` owns the sessions in `of`
    for (auto at = of.sessions.rbegin(); at != of.sessions.rend() && all.size() < count_max; ++at)
      all.push_back(report_of(*at));
  return all;
}

std::vector<session_report> session_table::one(const session_id& id) const {
  auto found = by_id_.find(id);
  if (found == by_id_.end())
    return {};
  return {report_of(*found->second)};
}

session_report session_table::report_of(const session& one) {
  return {one.what.id,    one.what.owner,
          one.what.in,    one.what.keep,
          one.generation, one.lengths,
          one.bytes,      one.what.held,
          one.saved,      one.lengths.held_tokens(one.what.chunk_tokens)};
}

void session_table::touch(place at) {
  auto& line = owners_.find(at->what.owner)->second.sessions;
  step_over(at);
  count_again(
      at); // the walk may end at the first session that was used since it began, because all behind it were
           // used as well
  line.splice(line.end(), line, at);
}

/// Called after the state of the session has changed.
void session_table::count(place at) {
  uint64_t now = entry_bytes + at->what.state->bytes();
  owned& of = owners_.find(at->what.owner)->second;
  of.bytes += now - at->bytes;
  bytes_ += now - at->bytes;
  if (recount_ && at->counted == recount_->number)
    recount_->counted[at->what.owner].bytes += now - at->bytes;
  at->bytes = now;
}

void session_table::erase(place at) {
  auto of = owners_.find(at->what.owner);
  forget_count(at);
  of->second.bytes -= at->bytes;
  bytes_ -= at->bytes;
  forget(*at);
  of->second.sessions.erase(at);
  if (of->second.sessions.empty())
    owners_.erase(of);
}

void session_table::forget(const session& ends) {
  by_id_.erase(ends.what.id);
  if (ends.what.held)
    ended_.push_back(ends.what.id);
}

void session_table::evict_from(owned& from) {
  ++evicted_;
  erase(from.sessions.begin());
}

void session_table::keep_bounds(connection_id owner) {
  if (owner != nobody)
    for (auto of = owners_.find(owner);
         of != owners_.end() &&
         (of->second.sessions.size() > most_.owner_sessions_max || of->second.bytes > most_.owner_bytes_max);
         of = owners_.find(owner))
      evict_from(of->second);
  while (!by_id_.empty() && (by_id_.size() > most_.sessions_max || bytes_ > most_.bytes_max)) {
    auto victim = owners_.find(nobody);
    if (victim == owners_.end())
      victim = std::max_element(owners_.begin(), owners_.end(),
                                [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    evict_from(victim->second);
  }
}

} // namespace terrace
