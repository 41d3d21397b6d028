#include "session/tail_book.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

tail_reference tail_book::refer(const space_ptr& in, const digest& key, tail_referrer by) {
  tail& of = tails_[{in->id, key}];
  of.in = in;
  ++of.references[static_cast<size_t>(by)];
  ++references_[static_cast<size_t>(by)];
  return {*this, by, in->id, key};
}

void tail_book::end(space_id in, const digest& key, tail_referrer by) {
  auto known = tails_.find({in, key});
  assert(known != tails_.end() && known->second.references[static_cast<size_t>(by)] > 0);
  --known->second.references[static_cast<size_t>(by)];
  --references_[static_cast<size_t>(by)];
  if (std::ranges::any_of(known->second.references, [](uint64_t count) { return count != 0; }))
    return;
  if (unreferred_.size() < unreferred_max)
    unreferred_.push_back({std::move(known->second.in), key});
  tails_.erase(known);
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
