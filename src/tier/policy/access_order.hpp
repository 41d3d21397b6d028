// The order in which the accesses to a request's objects are recorded.
#pragma once

#include <cstddef>

namespace terrace {

/// Objects are ordered by chunk. Accesses are recorded so that the order of access is the order of eviction:
/// last chunk first, because a prefix is useful without its end; but states of trailing pools after that,
/// from the first on, because the last states are the ones needed. `present(i)` and `trailing(i)` describe
/// object i; `visit(i)` is called once per present object, and must not change their results for other
/// objects.
template <class Present, class Trailing, class Visit>
void in_access_order(size_t objects, Present&& present, Trailing&& trailing, Visit&& visit) {
  bool states = false;
  for (size_t i = objects; i-- > 0;) {
    if (!present(i))
      continue;
    if (trailing(i))
      states = true;
    else
      visit(i);
  }
  for (size_t i = 0; states && i < objects; ++i)
    if (present(i) && trailing(i))
      visit(i);
}

} // namespace terrace
