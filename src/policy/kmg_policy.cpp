#include "policy/kmg_policy.hpp"

#include "policy/access_history.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

kmg_policy::worth kmg_policy::worth_of(entry_index at) const {
  return {context_.history.value(at), stamp(at), at};
}

void kmg_policy::add_candidate(entry_index at) {
  if (context_.forest.listed(at))
    return;
  if (leaves_.size() > 2 * context_.forest.residents() + 1024)
    sweep();
  context_.forest.set_listed(at, true);
  leaves_.push(at);
}

void kmg_policy::remove(size_t place) {
  context_.forest.set_listed(leaves_[place], false);
  leaves_[place] = leaves_.back();
  leaves_.pop();
}

void kmg_policy::sweep() {
  for (size_t i = 0; i < leaves_.size(); ++i)
    context_.forest.set_listed(leaves_[i], false);
  for (size_t i = leaves_.size(); i-- > 0;) {
    if (context_.forest.leaf(leaves_[i]) && !context_.forest.listed(leaves_[i])) {
      context_.forest.set_listed(leaves_[i], true);
      continue;
    }
    leaves_[i] = leaves_.back();
    leaves_.pop();
  }
}

void kmg_policy::extremes::add(const worth& w) {
  if (w < least)
    least = w;
  if (older(w, oldest))
    oldest = w;
}

/// The first two leaves of the sample in both orders. Places are `nowhere` until a leaf is drawn.
struct kmg_policy::drawing {
  static constexpr size_t nowhere = ~size_t{0};
  extremes first, second;
  size_t least_place = nowhere, oldest_place = nowhere;

  void add(const worth& w, size_t place) {
    if (place == least_place || place == oldest_place)
      return; // drawn before
    if (w < first.least) {
      second.least = std::exchange(first.least, w);
      least_place = place;
    } else if (w < second.least) {
      second.least = w;
    }
    if (older(w, first.oldest)) {
      second.oldest = std::exchange(first.oldest, w);
      oldest_place = place;
    } else if (older(w, second.oldest)) {
      second.oldest = w;
    }
  }
  void moved(size_t from, size_t to) {
    least_place = least_place == from ? to : least_place;
    oldest_place = oldest_place == from ? to : oldest_place;
  }
  size_t victim_place() const { return first.victim().at == first.oldest.at ? oldest_place : least_place; }
  extremes rest() const {
    size_t place = victim_place();
    return {place == least_place ? second.least : first.least,
            place == oldest_place ? second.oldest : first.oldest};
  }
};

bool kmg_policy::consider(size_t place, bool drop_held, drawing& so_far) {
  entry_index at = leaves_[place];
  const prefix_forest& forest = context_.forest;
  if (!forest.leaf(at) || forest.proposed(at) || (drop_held && forest.pinned(at))) {
    remove(place);
    so_far.moved(leaves_.size(), place);
    return false;
  }
  if (forest.pinned(at) || (context_.spared != 0 && stamp(at) == context_.spared))
    return false;
  so_far.add(worth_of(at), place);
  return true;
}

size_t kmg_policy::place_at(uint64_t random) const {
  return (detail::mix64(random) >> 32) * leaves_.size() >> 32;
}

/// Little of a large table is in the cache: this loads what the next draws read, with many misses at a time
/// instead of one after the other. Leaves that are removed meanwhile move few of the places.
void kmg_policy::fetch_next() const {
  uint64_t random = random_;
  for (size_t i = 0; i < fetched; ++i) {
    entry_index at = leaves_[place_at(random += random_step)];
    context_.forest.fetch(at);
    context_.table.fetch(at);
  }
}

size_t kmg_policy::draw() {
  drawing drawn;
  size_t seen = 0;
  for (size_t tries = 0; leaves_.size() > draws && seen < draws && tries < tries_max; ++tries) {
    if (tries % fetched == 0)
      fetch_next();
    seen += consider(place_at(random_ += random_step), tries > crowded, drawn);
  }
  if (seen < draws) {
    bool many = leaves_.size() > draws;
    for (size_t place = leaves_.size(); place-- > 0;)
      consider(place, many, drawn);
  }
  rest_ = drawn.rest();
  return std::min(drawn.victim_place(), leaves_.size());
}

entry_index kmg_policy::pop_victim() {
  size_t place = draw();
  if (place == leaves_.size())
    return no_entry;
  entry_index at = leaves_[place];
  remove(place);
  return at;
}

bool kmg_policy::parent_is_next_victim(entry_index parent) { return worth_of(parent) < rest_.least; }

size_t kmg_policy::beating_victim(std::span<const entry_index> candidates) {
  size_t place = draw();
  if (place == leaves_.size())
    return candidates.size();
  float least = context_.history.value(leaves_[place]);
  auto worse = [&](entry_index at) { return context_.history.value(at) < least; };
  return static_cast<size_t>(std::find_if(candidates.begin(), candidates.end(), worse) - candidates.begin());
}

} // namespace terrace
