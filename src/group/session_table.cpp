#include "group/session_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

void session_table::open(const session_opening& opening, tail_reference tail) {
  assert(!by_id_.contains(opening.id));
  owned& of = owners_[opening.owner];
  auto at = of.sessions.insert(
      of.sessions.end(),
      {.id = opening.id,
       .owner = opening.owner,
       .keep = opening.keep,
       .tail = std::move(tail),
       .parked = session(opening.space, opening.chunk_tokens, opening.held, opening.root, opening.state)});
  by_id_.emplace(opening.id, at);
  count(at);
  count_again(at);
  keep_bounds(opening.owner);
}

session session_table::take(const session_id& id) {
  entry& one = *by_id_.at(id);
  assert(one.parked);
  one.told = std::make_unique<session_facts>(one.parked->facts());
  session turns = std::move(*one.parked);
  one.parked.reset();
  ++active_;
  return turns;
}

bool session_table::park(const session_id& id, session& turns) {
  auto found = by_id_.find(id);
  if (found == by_id_.end())
    return false;
  entry& one = *found->second;
  assert(!one.parked && *one.told == turns.facts()); // it has reported each change
  one.parked = std::move(turns);
  one.told = nullptr;
  --active_;
  return true;
}

session* session_table::parked(const session_id& id) {
  auto found = by_id_.find(id);
  return found == by_id_.end() || !found->second->parked ? nullptr : &*found->second->parked;
}

bool session_table::used(const session_id& id, session_facts now) {
  auto found = by_id_.find(id);
  if (found == by_id_.end())
    return false;
  touch(found->second);
  *found->second->told = std::move(now);
  return true;
}

bool session_table::saved(const session_id& id, session_facts now) {
  if (!used(id, std::move(now)))
    return false;
  count_saved(by_id_.at(id));
  return true;
}

bool session_table::saved_end(const session_id& id, session_facts now, tail_reference tail) {
  if (!used(id, std::move(now)))
    return false;
  place at = by_id_.at(id);
  replace_tail(at, std::move(tail));
  count_saved(at);
  return true;
}

void session_table::count_saved(place at) {
  connection_id owner = at->owner;
  count(at);
  keep_bounds(owner);
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
    if (at->keep) {
      at->owner = nobody;
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

session_report session_table::report_of(const entry& one) {
  auto now = one.facts();
  return {one.id,      one.owner, now.space, one.keep,  now.generation,
          now.lengths, one.bytes, now.held,  now.saved, now.lengths.held_tokens(now.chunk_tokens)};
}

void session_table::touch(place at) {
  auto& line = owners_.find(at->owner)->second.sessions;
  step_over(at);
  count_again(
      at); // the walk may end at the first session that was used since it began, because all behind it were
           // used as well
  line.splice(line.end(), line, at);
}

/// Called after the state of the session has changed.
void session_table::count(place at) {
  uint64_t now = entry_bytes + at->facts().state_bytes;
  owned& of = owners_.find(at->owner)->second;
  of.bytes += now - at->bytes;
  bytes_ += now - at->bytes;
  if (recount_ && at->counted == recount_->number)
    recount_->counted[at->owner].bytes += now - at->bytes;
  at->bytes = now;
}

void session_table::erase(place at) {
  auto of = owners_.find(at->owner);
  forget_count(at);
  of->second.bytes -= at->bytes;
  bytes_ -= at->bytes;
  forget(*at);
  of->second.sessions.erase(at);
  if (of->second.sessions.empty())
    owners_.erase(of);
}

void session_table::forget(entry& ends) {
  by_id_.erase(ends.id);
  active_ -= ends.parked ? 0 : 1;
  if (!ends.parked || ends.facts().held)
    ended_.push_back({ends.id, std::move(ends.parked)});
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
