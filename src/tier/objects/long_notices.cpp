#include "tier/objects/long_notices.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

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

} // namespace terrace
