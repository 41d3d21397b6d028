#include "policy/kmg_order.hpp"

#include "policy/use_history.hpp"

#include <limits>

namespace terrace {

kmg_order::worth kmg_order::worth_of(entry_index at) const { return {context_.history.value(at), stamp(at)}; }

void kmg_order::exposed(entry_index at) {
  if (context_.forest.listed(at))
    return;
  if (leaves_.size() > 2 * context_.forest.residents() + 1024)
    sweep();
  context_.forest.set_listed(at, true);
  leaves_.push(at);
}

void kmg_order::remove(size_t place) {
  context_.forest.set_listed(leaves_[place], false);
  leaves_[place] = leaves_.back();
  leaves_.pop();
}

void kmg_order::sweep() {
  for (size_t i = 0; i < leaves_.size(); ++i)
    context_.forest.set_listed(leaves_[i], false);
  for (size_t i = leaves_.size(); i-- > 0;) {
    if (context_.forest.may_leave(leaves_[i]) && !context_.forest.listed(leaves_[i])) {
      context_.forest.set_listed(leaves_[i], true);
      continue;
    }
    leaves_[i] = leaves_.back();
    leaves_.pop();
  }
}

size_t kmg_order::draw() {
  constexpr worth highest{std::numeric_limits<float>::infinity(), ~0U};
  worth least = highest;
  second_ = highest;
  size_t best = leaves_.size();
  bool all = leaves_.size() <= draws;
  for (size_t drawn = 0; drawn < (all ? leaves_.size() : draws);) {
    size_t place = drawn;
    if (!all) {
      random_ += 0x9e3779b97f4a7c15ULL; // splitmix64
      place = (detail::mix64(random_) >> 32) * leaves_.size() >> 32;
    }
    entry_index at = leaves_[place];
    if (!context_.forest.may_leave(at) || context_.forest.proposed(at)) {
      remove(place);
      if (best == leaves_.size())
        best = place; // the last moved here
      all = all || leaves_.empty();
      continue;
    }
    ++drawn;
    if (place == best)
      continue;
    worth w = worth_of(at);
    if (w < least) {
      second_ = least;
      least = w;
      best = place;
    } else if (w < second_) {
      second_ = w;
    }
  }
  return least < highest ? best : leaves_.size();
}

entry_index kmg_order::pick() {
  size_t place = draw();
  if (place == leaves_.size())
    return no_entry;
  entry_index at = leaves_[place];
  remove(place);
  return at;
}

bool kmg_order::follows(entry_index parent) { return worth_of(parent) < second_; }

bool kmg_order::beats_victim(entry_index candidate) {
  size_t place = draw();
  return place == leaves_.size() ||
         context_.history.value(candidate) >= context_.history.value(leaves_[place]);
}

} // namespace terrace
