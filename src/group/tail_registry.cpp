#include "group/tail_registry.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

tail_reference tail_registry::refer(const space_ptr& space, const digest& key, tail_referrer by) {
  auto at = tails_.try_emplace({space->id, key}, referred_tail{.book = this}).first;
  at->second.space = space;
  ++at->second.references[static_cast<size_t>(by)];
  ++references_[static_cast<size_t>(by)];
  return {*at, by};
}

void tail_registry::end(tail_reference::named_tail& one, tail_referrer by) {
  auto& [name, tail] = one;
  assert(tail.references[static_cast<size_t>(by)] > 0);
  --tail.references[static_cast<size_t>(by)];
  --references_[static_cast<size_t>(by)];
  if (std::ranges::any_of(tail.references, [](uint64_t count) { return count != 0; }))
    return;
  if (unreferred_.size() < unreferred_max)
    unreferred_.push_back({std::move(tail.space), name.key});
  tails_.erase(tails_.find(name));
}

unreferred_tail tail_registry::next_unreferred() {
  while (!unreferred_.empty()) {
    unreferred_tail next = std::move(unreferred_.front());
    unreferred_.pop_front();
    if (!referred(next.space->id, next.key))
      return next;
  }
  return {};
}

void stored_tails::remove(std::map<name, place>::iterator known) {
  auto of = by_owner_.find(known->second.owner);
  of->second.erase(known->second.at);
  if (of->second.empty())
    by_owner_.erase(of);
  by_key_.erase(known);
}

void stored_tails::add(connection_id owner, const space_ptr& space, const digest& key) {
  // taken before another reference to the tail ends
  tail_reference reference = tails_->refer(space, key, tail_referrer::store);
  if (auto known = by_key_.find({space->id, key}); known != by_key_.end())
    remove(known);
  line& of = by_owner_[owner];
  if (of.size() == of_connection_max) {
    by_key_.erase(of.front().what);
    of.pop_front();
  }
  auto at = of.insert(of.end(), {{space->id, key}, std::move(reference)});
  by_key_.emplace(at->what, place{owner, at});
  assert(of.size() <= of_connection_max);
}

void stored_tails::saved(space_id space, const digest& key) {
  if (auto known = by_key_.find({space, key}); known != by_key_.end())
    remove(known);
}

void stored_tails::end(connection_id owner) {
  auto of = by_owner_.find(owner);
  if (of == by_owner_.end())
    return;
  for (const stored& one : of->second)
    by_key_.erase(one.what);
  by_owner_.erase(of);
}

} // namespace terrace
