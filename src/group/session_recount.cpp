// Recounts the sessions while the table changes: see session_table.hpp.
#include "group/session_table.hpp"

#include <algorithm>
#include <iterator>

namespace terrace {

namespace {
std::string owner_text(connection_id owner) {
  return owner == connection_id{} ? std::string("the kept sessions of ended connections")
                                  : "connection " + std::to_string(static_cast<uint64_t>(owner));
}

std::string session_text(const session_id& id) { return "session " + to_hex(id.bytes); }
} // namespace

void session_table::begin_recount() { recount_.emplace(++recounts_); }

void session_table::count_again(place at) {
  if (!recount_ || at->counted == recount_->number)
    return;
  at->counted = recount_->number;
  recounting::sum& sum = recount_->counted[at->owner];
  ++sum.sessions;
  sum.bytes += at->bytes;
  sum.tails += at->tail ? 1 : 0;
  auto known = by_id_.find(at->id);
  if (known == by_id_.end() || known->second != at)
    recount_->differences.push_back(session_text(at->id) + " cannot be found by its id");
  if (uint64_t has = entry_bytes + at->facts().state_bytes; has != at->bytes)
    recount_->differences.push_back(session_text(at->id) + " has " + std::to_string(has) +
                                    " bytes of the daemon's memory, and " + std::to_string(at->bytes) +
                                    " are counted for it");
  auto saved = at->facts().saved;
  bool has_tail = saved && saved->tail_tokens != 0;
  if (has_tail != static_cast<bool>(at->tail) || (has_tail && at->tail.key() != saved->key))
    recount_->differences.push_back(session_text(at->id) + " was saved with " +
                                    (has_tail ? "a tail" : "no tail") + ", and refers to " +
                                    (!at->tail  ? "none"
                                     : has_tail ? "another one"
                                                : "one"));
}

void session_table::replace_tail(place at, tail_reference tail) {
  if (recount_ && at->counted == recount_->number) {
    uint64_t& tails = recount_->counted[at->owner].tails;
    tails += tail ? 1 : 0;
    tails -= at->tail ? 1 : 0;
  }
  at->tail = std::move(tail);
}

/// Counts the session that leaves its place, so that the walk can continue behind it without missing any.
/// Sessions in front of the walk are left to it.
void session_table::step_over(place at) {
  if (!recount_ || recount_->at != at)
    return;
  count_again(at);
  auto next = std::next(at);
  bool last = next == owners_.find(recount_->owner)->second.sessions.end();
  recount_->at = last ? std::nullopt : std::optional(next);
}

void session_table::forget_count(place at) {
  step_over(at);
  if (!recount_ || at->counted != recount_->number)
    return;
  auto sum = recount_->counted.find(at->owner);
  sum->second.bytes -= at->bytes;
  sum->second.tails -= at->tail ? 1 : 0;
  if (--sum->second.sessions == 0)
    recount_->counted.erase(sum);
}

session_table::recount session_table::recount_step(size_t sessions_max,
                                                   std::vector<std::string>& differences) {
  if (!recount_)
    return recount::interrupted;
  for (size_t n = 0; n < sessions_max; ++n) {
    if (!recount_->at) {
      auto next = recount_->begun ? owners_.upper_bound(recount_->owner) : owners_.begin();
      if (next == owners_.end()) {
        compare_recount(differences);
        recount_.reset();
        return recount::done;
      }
      recount_->begun = true;
      recount_->owner = next->first;
      if (next->second.sessions.empty()) {
        recount_->differences.push_back(owner_text(next->first) + " is listed, and owns no session");
        continue;
      }
      recount_->at = next->second.sessions.begin();
    }
    place at = *recount_->at;
    // the session was used or opened since the recount began, and so were all behind it
    if (at->counted == recount_->number) {
      recount_->at.reset();
      continue;
    }
    if (at->owner != recount_->owner)
      recount_->differences.push_back(session_text(at->id) + " is listed for " + owner_text(recount_->owner) +
                                      ", and belongs to " + owner_text(at->owner));
    step_over(at);
  }
  return recount::more;
}

void session_table::compare_recount(std::vector<std::string>& differences) {
  differences.insert(differences.end(), recount_->differences.begin(), recount_->differences.end());
  auto compare = [&](const std::string& text, uint64_t counted, uint64_t kept) {
    if (counted != kept)
      differences.push_back(text + ": " + std::to_string(counted) + " were counted, and " +
                            std::to_string(kept) + " are kept");
  };
  uint64_t sessions = 0, bytes = 0;
  recounted_tails_ = 0;
  for (const auto& [owner, of] : owners_) {
    auto found = recount_->counted.find(owner);
    recounting::sum sum = found == recount_->counted.end() ? recounting::sum{} : found->second;
    compare("sessions of " + owner_text(owner), sum.sessions, of.sessions.size());
    compare("bytes of the sessions of " + owner_text(owner), sum.bytes, of.bytes);
  }
  for (const auto& [owner, sum] : recount_->counted) {
    sessions += sum.sessions;
    bytes += sum.bytes;
    recounted_tails_ += sum.tails;
  }
  compare("sessions", sessions, by_id_.size());
  compare("bytes of sessions", bytes, bytes_);
}

} // namespace terrace
