#include "tier/objects/tier_changes.hpp"

#include "tier/quota/tenant_shares.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

void tier_changes::free(const std::vector<extent>& extents) {
  if (extents.empty())
    return;
  changed_ = true;
  if (!(round_ && round_->put_back(extents)))
    freed_.insert(freed_.end(), extents.begin(), extents.end());
}

tier_changes::news tier_changes::drain_news() {
  news out;
  if (auto* durable = objects_->durable())
    out.records = durable->take_changes();
  if (auto notes = objects_->take_notes(); !notes.notes.empty() && notes_.admits(notes)) {
    out.notes = std::move(notes);
    out.mark = notes_.mark_due();
  }
  if (auto left = objects_->departures().take_left(); !left.empty()) {
    out.retired_objects = left.size();
    out.retired_bytes = bytes_of(left);
    free(left);
  }
  out.changed = std::exchange(changed_, false);
  out.freed = std::exchange(freed_, {});
  const bool evictable = objects_->take_evictable();
  if (evictable && round_)
    round_->more_evictable();
  if (evictable || (waits_for_transfers_ && objects_->only_leases_hold())) {
    out.changed = true;
    waits_for_transfers_ = false;
    out.evictable = std::exchange(owes_notice_, false);
    notices_ += out.evictable ? 1 : 0;
    assert(notices_ <= failed_rounds_);
  }
  return out;
}

tier_changes::kept_notes tier_changes::take_kept_notes() {
  kept_notes kept;
  kept.batches = notes_.take();
  kept.mark = notes_.mark_due();
  return kept;
}

tier_report tier_changes::report(const usage_answer& usage) const {
  tier_report out;
  out.kind = kind_;
  out.allocator = usage.allocator;
  out.usage = usage.usage;
  out.room_bytes = usage.room_bytes;
  out.waiting = usage.waiting;
  out.objects = objects_->table().published();
  out.held_objects = objects_->table().totals().held.objects;
  out.evictions = objects_->departures().evictions;
  out.errors = objects_->discarded;
  for (const auto& [space, use] : objects_->table().totals().by_space)
    out.spaces[space] = {use.objects, use.bytes};
  return out;
}

void tier_changes::begin(std::shared_ptr<eviction_round> round) {
  assert(!round_); // one round at a time: the tier keeps the allocator's until its own is over
  round_ = std::move(round);
  relieved_ = false;
  objects_->shares().unshield(round_->tenant(),
                              round_->asked_bytes()); // the tenant's own least valuable objects first
}

victim_request tier_changes::question() {
  if (round_->own())
    objects_->shares().watch_new();
  return round_->question(kind_);
}

void tier_changes::choose(victim_answer named) {
  if (objects_->departures().keep_held(named))
    round_->more_evictable(); // the policy names other objects next time
  if (round_->own())
    objects_->shares().keep_only_of(round_->tenant(), named);
  else if (objects_->shares().keep(named, round_->tenant()))
    round_->more_evictable();
  round_->offer(std::move(named));
  round_->choose(*objects_);
}

std::vector<object_id> tier_changes::begin_demotion() {
  if (round_->now() != eviction_round::stage::evicting)
    return {};
  demoted_ = objects_->departures().begin_demotion(round_->victims());
  return *demoted_;
}

std::optional<tier_changes::eviction> tier_changes::evict() {
  if (round_->now() != eviction_round::stage::evicting)
    return std::nullopt;
  auto demoted = std::exchange(demoted_, std::nullopt);
  if (demoted && round_->ends_without()) {
    objects_->departures().keep(*demoted);
    return std::nullopt;
  }
  eviction done;
  auto freed = round_->evict(*objects_, demoted ? &*demoted : nullptr).freed;
  done.objects = freed.size();
  done.bytes = bytes_of(freed);
  if (done.bytes > round_->missing_bytes())
    done.excess_bytes = done.bytes - round_->missing_bytes();
  done.ahead = round_->ahead() && !round_->own();
  done.own = round_->own();
  return done;
}

std::shared_ptr<eviction_round> tier_changes::take_ended() {
  if (round_->now() == eviction_round::stage::asked)
    return nullptr;
  if (round_->failed() && !relieved_ && objects_->shares().unshield_all_beyond()) {
    relieved_ = true;
    round_->retry();
    return nullptr;
  }
  waits_for_transfers_ = waits_for_transfers_ || round_->transfers_held();
  if (round_->own())
    return std::exchange(round_, nullptr);
  failed_rounds_ += round_->failed() ? 1 : 0;
  owes_notice_ = owes_notice_ || round_->failed(); // an earlier round may have been for another request
  return std::exchange(round_, nullptr);
}

long_notices::outcome long_notices::step(residency& objects) {
  assert(!line_.empty());
  notice& first = line_.front();
  size_t end = std::min(first.done + step_objects, first.ids.size());
  std::vector<object_id> some(first.ids.begin() + static_cast<ptrdiff_t>(first.done),
                              first.ids.begin() + static_cast<ptrdiff_t>(end));
  first.done = end;
  outcome done;
  if (first.what == kind::release) {
    done.freed = objects.release(some);
  } else {
    auto gone = objects.discard(some, first.why);
    done.freed = std::move(gone.freed);
    done.discarded = gone.objects;
    done.why = first.why;
  }
  if (first.done == first.ids.size())
    line_.pop_front();
  return done;
}

bool note_queue::admits(policy_notes& batch) {
  if (marks_ < marks_max && kept_.empty()) {
    ++since_mark_;
    return true;
  }
  tier_ = batch.tier;
  for (const policy_note& note : batch.notes)
    keep(note, batch.inference);
  batch = {};
  return false;
}

bool note_queue::mark_due() {
  if (since_mark_ < batches_between_marks)
    return false;
  since_mark_ = 0;
  ++marks_;
  assert(marks_ <= marks_max);
  return true;
}

/// Moves a note to the end, replacing the one at `position`.
void note_queue::replace(size_t& position) {
  if (position != 0) {
    kept_[position - 1].dead = true;
    ++dead_;
  }
  position = kept_.size() + 1;
}

void note_queue::keep(policy_note note, uint64_t inference) {
  switch (note.kind) {
    case note_kind::hit:
      if (kept_uses_ >= kept_uses_max)
        return;
      if (size_t former = latest_[note.key].use; former != 0)
        note.entries = std::max(note.entries, kept_[former - 1].note.entries);
      kept_uses_ += note.entries;
      replace(latest_[note.key].use);
      break;
    case note_kind::pin:
    case note_kind::unpin: replace(latest_[note.key].hold); break;
    case note_kind::insert:
    case note_kind::evict:
    case note_kind::erase: latest_.erase(note.key); break;
  }
  kept_.push_back({note, inference});
  if (dead_ > kept_.size() / 2)
    compact();
}

void note_queue::compact() {
  std::erase_if(kept_, [](const kept_note& one) { return one.dead; });
  dead_ = 0;
  kept_uses_ = 0;
  latest_.clear();
  for (size_t i = 0; i < kept_.size(); ++i) {
    const policy_note& note = kept_[i].note;
    if (note.kind == note_kind::hit) {
      latest_[note.key].use = i + 1;
      kept_uses_ += note.entries;
    } else if (note.kind == note_kind::pin || note.kind == note_kind::unpin) {
      latest_[note.key].hold = i + 1;
    } else {
      latest_.erase(note.key);
    }
  }
}

std::vector<policy_notes> note_queue::take() {
  std::vector<policy_notes> batches;
  for (const kept_note& one : kept_) {
    if (one.dead)
      continue;
    // Insertions are sent with the number of their inference; accesses and holds go with any.
    bool stored = one.note.kind == note_kind::insert;
    if (batches.empty() || (stored && batches.back().inference != one.inference))
      batches.push_back({tier_, {}, one.inference});
    batches.back().notes.push_back(one.note);
  }
  if (!batches.empty())
    ++since_mark_;
  kept_ = {};
  latest_ = {};
  dead_ = 0;
  kept_uses_ = 0;
  return batches;
}

} // namespace terrace
