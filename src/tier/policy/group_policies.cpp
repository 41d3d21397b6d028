#include "tier/policy/group_policies.hpp"

#include "base/tier_properties.hpp"
#include "policy/eviction_policy.hpp"
#include "tier/objects/tier_check.hpp"

#include <algorithm>
#include <array>

namespace terrace {

namespace {
constexpr size_t expected_notes = 32;
constexpr size_t few_notes = 4; ///< so few notes are not worth it

tier_number number_of(tier_kind tier) { return static_cast<tier_number>(tier); }
} // namespace

group_policies::group_policies(clock_source clock, bool remember, age_observer* ages)
    : tracker_(policy_seed, remember), clock_(clock) {
  tracker_.set_observer(ages);
}

result<void> group_policies::add_tier(tier_kind tier, const std::string& policy) {
  return tracker_.set_policy(number_of(tier), policy);
}

set_policy_answer group_policies::set_policy(const set_policy_request& request) {
  set_policy_answer answer;
  answer.before = tracker_.policy(number_of(request.tier));
  if (answer.before.empty())
    answer.failure = {errc::not_found,
                      std::string("this trust group has no ") + to_string(request.tier) + " tier"};
  else if (auto set = tracker_.set_policy(number_of(request.tier), request.policy); !set)
    answer.failure = set.error();
  return answer;
}

/// Loads what the first notes read of the policy's tables into the cache; reading it one by one would take
/// most of their time.
void group_policies::expect(std::span<const policy_note> notes) const {
  std::array<entry_key, 2 * expected_notes> keys;
  size_t count = 0;
  for (const policy_note& note : notes.first(std::min(notes.size(), expected_notes))) {
    keys[count++] = note.key;
    if (!note.parent.empty())
      keys[count++] = note.parent;
  }
  tracker_.expect(std::span(keys).first(count));
}

void group_policies::apply(const policy_notes& notes) {
  policy_time at = clock_.now();
  request_number request = notes.inference == 0 ? 0 : inferences_.find(notes.inference);
  tier_number tier = number_of(notes.tier);
  for (size_t i = 0; i < notes.notes.size(); ++i) {
    const policy_note& note = notes.notes[i];
    // Other notes are mostly about chains, whose entries lie beside each other.
    if (note.kind == note_kind::insert && i % expected_notes == 0 && notes.notes.size() - i > few_notes)
      expect(std::span(notes.notes).subspan(i));
    switch (note.kind) {
      case note_kind::insert: tracker_.insert(tier, {note.key, note.parent, note.bytes}, at, request); break;
      case note_kind::hit: tracker_.hit(tier, note.key, at, note.entries); break;
      case note_kind::erase: tracker_.erase(tier, note.key); break;
      case note_kind::evict: tracker_.evict(tier, note.key); break;
      case note_kind::pin: tracker_.pin(tier, note.key); break;
      case note_kind::unpin: tracker_.unpin(tier, note.key); break;
    }
  }
}

void group_policies::apply_restored(const restored_request& restored) {
  // The buckets of ten million take some 30 ms, in which the worker would do nothing else. With a part of them each time, all
  // are there while the table is nearly empty.
  constexpr size_t buckets_together = 16'384;
  if (restored.follow != 0)
    expected_ = tracker_.tracked() + restored.follow;
  if (expected_ != 0 && !tracker_.reserve(expected_, buckets_together))
    expected_ = 0;
  apply(restored.found);
}

void group_policies::begin(const inference_begin& begun) {
  if (inferences_.contains(begun.inference))
    return;
  clock_.hear(begun.told);
  request_hints hints = begun.hints;
  if (auto first = begun.objects.cut(0, 1); first.range.count != 0)
    hints.space = static_cast<uint32_t>(first.objects->keys[first.range.first].space);
  inferences_.begin(begun.inference, chains_.begin(tracker_, begun.objects, hints, clock_.now()));
}

void group_policies::end(const inference_end& ended) {
  clock_.hear(ended.told);
  if (request_number request = inferences_.end(ended.inference); request != 0)
    tracker_.end_request(request, ended.outcome, clock_.now());
}

victim_answer group_policies::victims(const victim_request& request) {
  victim_answer answer;
  tier_number tier = number_of(request.tier);
  if (tracker_.policy(tier).empty()) {
    answer.failure = {errc::internal, std::string("no policy for tier ") + to_string(request.tier)};
    return answer;
  }
  request_number spared = request.inference == 0 ? 0 : inferences_.find(request.inference);
  for (const victim& named : tracker_.victims(tier, {request.bytes, spared}, clock_.now())) {
    answer.victims.push_back(named.key);
    answer.above.push_back(named.above);
    answer.bytes += named.bytes;
  }
  return answer;
}

admit_answer group_policies::admit(const admit_request& request) {
  admit_answer answer;
  answer.admitted = tracker_.admitted(number_of(request.tier), request.entries, request.rule, clock_.now());
  return answer;
}

check_answer_texts group_policies::check(const check_policy_request& request) const {
  return {{}, check_policy(tracker_, *request.slice)};
}

policies_report group_policies::report() const {
  policies_report made;
  made.known = eviction_policy_names();
  for (tier_kind kind : governed_tiers)
    if (tier_number tier = number_of(kind); !tracker_.policy(tier).empty())
      made.tiers.push_back({kind, std::string(tracker_.policy(tier)), tracker_.residents(tier)});
  made.tracked = tracker_.tracked();
  made.ghosts = tracker_.ghosts();
  made.bookkeeping_bytes = tracker_.bytes();
  return made;
}

std::vector<entry_key> chain_uses::chain::part(size_t first, size_t count) const {
  std::vector<entry_key> names;
  names.reserve(count);
  for (size_t i = first; i < first + count; ++i)
    names.push_back(i < states.size() ? states[states.size() - 1 - i] : others[i - states.size()]);
  return names;
}

void chain_uses::name(const object_source& objects, size_t first, size_t count, chain& into) {
  auto part = objects.cut(first, count);
  for (size_t i = part.range.first; i < part.range.first + part.range.count; ++i) {
    const object_key& key = part.objects->keys[i];
    (part.objects->trailing.test(key.pool) ? into.states : into.others).push_back(to_entry_key(key));
  }
}

request_number chain_uses::begin(eviction_tracker& tracker, object_source objects, const request_hints& hints,
                                 policy_time now) {
  if (objects.size() <= at_once_ || waiting_objects_ >= waiting_objects_max) {
    chain names;
    name(objects, 0, std::min(objects.size(), at_once_), names);
    return tracker.begin_request(names.part(0, names.size()), hints, now);
  }
  waiting_objects_ += objects.size();
  use later;
  later.names.states.reserve(
      objects.size()); // neither vector moves while it grows; unused memory is not touched
  later.names.others.reserve(objects.size());
  later.objects = std::move(objects);
  later.request = tracker.begin_long_request(hints, now);
  waiting_.push_back(std::move(later));
  return waiting_.back().request.number();
}

bool chain_uses::step(eviction_tracker& tracker, policy_time now) {
  if (waiting_.empty())
    return false;
  use& first = waiting_.front();
  if (size_t count = std::min(step_objects, first.objects.size() - first.named); count != 0) {
    name(first.objects, first.named, count, first.names);
    first.named += count;
  } else if (count = std::min(step_objects, first.names.size() - first.found); count != 0) {
    tracker.find_part(first.request, first.names.part(first.found, count));
    first.found += count;
  } else if (count = std::min(step_objects, first.names.size() - first.used); count != 0) {
    first.used += count;
    tracker.use_part(first.request, first.names.part(first.names.size() - first.used, count), now);
  }
  if (first.named == first.objects.size() && first.used == first.names.size()) {
    waiting_objects_ -= first.objects.size();
    waiting_.pop_front();
  }
  return !waiting_.empty();
}

} // namespace terrace
