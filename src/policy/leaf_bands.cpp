#include "policy/leaf_bands.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

void leaf_bands::rise(heap& h, size_t i, slot entry) {
  while (i > 0 && before(entry, h[(i - 1) / 4])) {
    h[i] = h[(i - 1) / 4];
    i = (i - 1) / 4;
  }
  h[i] = entry;
}

void leaf_bands::sink(heap& h, size_t i, slot entry) {
  for (;;) {
    size_t first = 4 * i + 1, end = std::min(first + 4, h.size());
    if (first >= end)
      break;
    size_t least = first;
    for (size_t j = first + 1; j < end; ++j)
      if (before(h[j], h[least]))
        least = j;
    if (!before(h[least], entry))
      break;
    h[i] = h[least];
    i = least;
  }
  h[i] = entry;
}

void leaf_bands::pop(heap& h) {
  --slots_;
  slot last = h.back();
  h.pop();
  if (!h.empty())
    sink(h, 0, last);
}

void leaf_bands::push(size_t band, slot entry) {
  heap& h = bands_[band];
  h.push(entry);
  ++slots_;
  rise(h, h.size() - 1, entry);
}

void leaf_bands::on_evict(entry_index at) { context_.forest.set_listed(at, false); }

void leaf_bands::add_candidate(entry_index at) {
  if (!context_.forest.listed(at))
    list(at);
}

void leaf_bands::list(entry_index at) {
  if (slots_ > context_.forest.residents() / 8 * 9 + 1024)
    sweep();
  context_.forest.set_listed(at, true);
  push(band_of(at), {rank_of(at), at});
}

bool leaf_bands::settle(size_t band) {
  heap& h = bands_[band];
  while (!h.empty()) {
    slot top = h[0];
    if (!context_.forest.may_leave(top.at)) {
      pop(h);
      context_.forest.set_listed(top.at, false);
      continue;
    }
    size_t now_in = band_of(top.at);
    uint32_t rank = rank_of(top.at);
    if (now_in != band) {
      pop(h);
      if (now_in > band && changes_ == band_changes::lazy)
        push(now_in, {rank, top.at});
    } else if (rank != top.rank) {
      sink(h, 0, {rank, top.at});
    } else {
      return true;
    }
  }
  return false;
}

void leaf_bands::sweep() {
  std::vector<heap> old(bands_.size());
  std::swap(old, bands_);
  slots_ = 0;
  for (const heap& h : old)
    for (size_t i = 0; i < h.size(); ++i)
      context_.forest.set_listed(h[i].at, false);
  for (const heap& h : old)
    for (size_t i = 0; i < h.size(); ++i)
      if (context_.forest.may_leave(h[i].at) && !context_.forest.listed(h[i].at)) {
        context_.forest.set_listed(h[i].at, true);
        push(band_of(h[i].at), {rank_of(h[i].at), h[i].at});
      }
}

entry_index leaf_bands::pop_from(size_t band) {
  if (!settle(band))
    return no_entry;
  entry_index at = bands_[band][0].at;
  pop(bands_[band]);
  context_.forest.set_listed(at, false);
  return at;
}

entry_index leaf_bands::pop_victim() {
  for (size_t band = 0; band < bands_.size(); ++band)
    if (entry_index at = pop_from(band); at != no_entry)
      return at;
  return no_entry;
}

bool leaf_bands::parent_is_next_victim(entry_index parent) {
  for (size_t band = 0; band < band_of(parent); ++band)
    if (!bands_[band].empty())
      return false;
  return precedes_band(parent);
}

bool leaf_bands::precedes_band(entry_index at) const {
  const heap& h = bands_[band_of(at)];
  return h.empty() || !before(h[0], {rank_of(at), at});
}

void leaf_bands::rank_fell(entry_index at) {
  if (context_.forest.may_leave(at))
    list(at);
  else
    context_.forest.set_listed(at, false); // its slot is invalid; it gets another as the next candidate
}

void leaf_bands::band_changed(entry_index at) {
  context_.forest.set_listed(at, false); // the slot in the old band is dropped when it is met
  if (context_.forest.may_leave(at))
    add_candidate(at);
}

void leaf_bands::on_rebase() { sweep(); }

size_t leaf_bands::bytes() const {
  size_t total = bands_.capacity() * sizeof(heap);
  for (const heap& h : bands_)
    total += h.bytes();
  return total;
}

} // namespace terrace
