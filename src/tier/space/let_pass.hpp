// Lets others go before a request that must wait.
#pragma once

#include "base/fair_queue.hpp"

#include <cstddef>
#include <cstdint>

namespace terrace {

/// The first of `line` waits: others whose turn `offer` (entry) can be served go before it, `of_each` of each connection
/// are looked at, together for at most `passing_left` of the first. Entries have a `number` of their own and
/// `passing_left`, in the unit of their cost. True: another one is the first now, because one of its own connection passed
/// it, and is charged to that.
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

/// How many entries are offered a turn each time that the first must wait.
struct tried_entries {
  size_t of_each = 8; ///< connection
  size_t in_total = SIZE_MAX;
};

/// Serves the line until its first must wait and nobody else may pass it. `offer` (entry): tries to serve it, and has
/// answered it unless it waits.
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
