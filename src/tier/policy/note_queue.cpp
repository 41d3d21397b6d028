#include "tier/policy/note_queue.hpp"

#include <cassert>

namespace terrace {

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

void note_queue::keep(const policy_note& note, uint64_t inference) {
  switch (note.kind) {
    case note_kind::hit: replace(latest_[note.key].use); break;
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
  latest_.clear();
  for (size_t i = 0; i < kept_.size(); ++i) {
    const policy_note& note = kept_[i].note;
    if (note.kind == note_kind::hit)
      latest_[note.key].use = i + 1;
    else if (note.kind == note_kind::pin || note.kind == note_kind::unpin)
      latest_[note.key].hold = i + 1;
    else
      latest_.erase(note.key);
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
  return batches;
}

} // namespace terrace
