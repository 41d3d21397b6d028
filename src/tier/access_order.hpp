// The order in which the objects of one request are used.
#pragma once

#include <cstddef>

namespace terrace {

/// Objects lie chunk by chunk. Use is noted so that an order by use is the order of leaving: the last chunk first, for a
/// prefix is worth something without its end; but states of trailing pools after that from the first on, for the last of
/// them are those that are needed. `present(i)` and `trailing(i)` are asked of the i-th; `visit(i)` is called once for each
/// that is present, and must not change what they answer for others.
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
