#include "policy/kmg_policy.hpp"

#include "policy/access_history.hpp"

#include <algorithm>
#include <limits>

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

struct kmg_policy::drawing {
  static constexpr worth highest{std::numeric_limits<float>::infinity(), ~0U, no_entry};
  size_t best = ~size_t{0};
  worth least = highest, second = highest;
};

bool kmg_policy::consider(size_t place, bool drop_held, drawing& so_far) {
  entry_index at = leaves_[place];
  const prefix_forest& forest = context_.forest;
  if (!forest.leaf(at) || forest.proposed(at) || (drop_held && forest.pinned(at))) {
    remove(place);
    if (so_far.best == leaves_.size())
      so_far.best = place; // the last element was moved here
    return false;
  }
  if (forest.pinned(at) || (context_.spared != 0 && stamp(at) == context_.spared))
    return false;
  if (place == so_far.best)
    return true;
  worth w = worth_of(at);
  if (w < so_far.least) {
    so_far.second = so_far.least;
    so_far.least = w;
    so_far.best = place;
  } else if (w < so_far.second) {
    so_far.second = w;
  }
  return true;
}

size_t kmg_policy::draw() {
  drawing drawn;
  size_t seen = 0;
  for (size_t tries = 0; leaves_.size() > draws && seen < draws && tries < tries_max; ++tries) {
    random_ += 0x9e3779b97f4a7c15ULL; // splitmix64
    seen += consider((detail::mix64(random_) >> 32) * leaves_.size() >> 32, tries > crowded, drawn);
  }
  if (seen < draws) {
    bool many = leaves_.size() > draws;
    for (size_t place = leaves_.size(); place-- > 0;)
      consider(place, many, drawn);
  }
  second_ = drawn.second;
  return std::min(drawn.best, leaves_.size());
}

entry_index kmg_policy::pop_victim() {
  size_t place = draw();
  if (place == leaves_.size())
    return no_entry;
  entry_index at = leaves_[place];
  remove(place);
  return at;
}

bool kmg_policy::parent_is_next_victim(entry_index parent) { return worth_of(parent) < second_; }

size_t kmg_policy::beating_victim(std::span<const entry_index> candidates) {
  size_t place = draw();
  if (place == leaves_.size())
    return candidates.size();
  float least = context_.history.value(leaves_[place]);
  auto worse = [&](entry_index at) { return context_.history.value(at) < least; };
  return static_cast<size_t>(std::find_if(candidates.begin(), candidates.end(), worse) - candidates.begin());
}

} // namespace terrace
