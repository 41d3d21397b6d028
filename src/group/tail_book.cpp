#include "group/tail_book.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

tail_reference tail_book::refer(const space_ptr& in, const digest& key, tail_referrer by) {
  auto at = tails_.try_emplace({in->id, key}, referred_tail{.book = this}).first;
  at->second.in = in;
  ++at->second.references[static_cast<size_t>(by)];
  ++references_[static_cast<size_t>(by)];
  return {*at, by};
}

void tail_book::end(tail_reference::named_tail& one, tail_referrer by) {
  auto& [name, tail] = one;
  assert(tail.references[static_cast<size_t>(by)] > 0);
  --tail.references[static_cast<size_t>(by)];
  --references_[static_cast<size_t>(by)];
  if (std::ranges::any_of(tail.references, [](uint64_t count) { return count != 0; }))
    return;
  if (unreferred_.size() < unreferred_max)
    unreferred_.push_back({std::move(tail.in), name.key});
  tails_.erase(tails_.find(name));
}

unreferred_tail tail_book::next_unreferred() {
  while (!unreferred_.empty()) {
    unreferred_tail next = std::move(unreferred_.front());
    unreferred_.pop_front();
    if (!referred(next.in->id, next.key))
      return next;
  }
  return {};
}

} // namespace terrace
