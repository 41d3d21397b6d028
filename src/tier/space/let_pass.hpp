// Lets others go before a request that must wait.
#pragma once

#include "base/fair_queue.hpp"

#include <cstddef>
#include <cstdint>

namespace terrace {

/// Lets others pass the first entry of `line`, which waits. `of_each` entries of each connection are offered a turn
/// with `offer` (entry). Those that can be served go before the first, together for at most its `passing_left`. Entries
/// have a `number` of their own and `passing_left`, in the unit of their cost. Returns true if another entry is the
/// first now, because one of the first one's own connection passed it, and is charged to that.
template <class Entry, class Offer>
bool let_pass(fair_queue<Entry>& line, size_t of_each, Offer&& offer) {
  Entry* first = line.front();
  uint64_t number = first->number;
  auto pass = [&](Entry& entry, uint64_t cost) {
    if (&entry == first || cost > first->passing_left)
      return turn::waits;
    turn got = offer(entry);
    if (got == turn::served)
      first->passing_left -= cost;
    return got;
  };
  while (line.take_first(pass, of_each)) {
    first = line.front();
    if (first->number != number)
      return true;
  }
  return false;
}

/// The number of entries that are offered a turn each time that the first must wait.
struct tried_entries {
  size_t of_each = 8; ///< of each connection
  size_t in_total = SIZE_MAX;
};

/// Serves the line until its first entry must wait and no other may pass it. `offer` (entry) tries to serve
/// an entry, and has answered it unless it waits.
template <class Entry, class Offer>
void serve_line(fair_queue<Entry>& line, const tried_entries& tried_max, Offer&& offer) {
  while (Entry* first = line.front()) {
    turn got = offer(*first);
    size_t tried = 0;
    auto others = [&](Entry& entry) { return ++tried > tried_max.in_total ? turn::waits : offer(entry); };
    if (got == turn::served)
      line.pop();
    else if (got == turn::ended)
      line.drop();
    else if (!let_pass(line, tried_max.of_each, others))
      return;
  }
}

} // namespace terrace
