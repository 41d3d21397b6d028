#include "memory/free_runs.hpp"

#include "base/object_key.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

free_runs::index free_runs::make_node(extent run) {
  index at;
  if (spare_.empty()) {
    at = static_cast<index>(nodes_.size());
    nodes_.emplace_back();
  } else {
    at = spare_.back();
    spare_.pop_back();
  }
  nodes_[at] = {run, run.size, detail::mix64(run.offset + 1), none, none};
  return at;
}

void free_runs::update(index at) {
  node& n = nodes_[at];
  n.largest = n.run.size;
  if (n.left != none)
    n.largest = std::max(n.largest, nodes_[n.left].largest);
  if (n.right != none)
    n.largest = std::max(n.largest, nodes_[n.right].largest);
}

void free_runs::split(index at, uint64_t offset, index& left, index& right) {
  if (at == none) {
    left = right = none;
  } else if (nodes_[at].run.offset < offset) {
    index middle;
    split(nodes_[at].right, offset, middle, right);
    nodes_[at].right = middle;
    left = at;
    update(at);
  } else {
    index middle;
    split(nodes_[at].left, offset, left, middle);
    nodes_[at].left = middle;
    right = at;
    update(at);
  }
}

free_runs::index free_runs::merge(index left, index right) {
  if (left == none)
    return right;
  if (right == none)
    return left;
  if (nodes_[left].priority > nodes_[right].priority) {
    index joined = merge(nodes_[left].right, right);
    nodes_[left].right = joined;
    update(left);
    return left;
  }
  index joined = merge(left, nodes_[right].left);
  nodes_[right].left = joined;
  update(right);
  return right;
}

void free_runs::insert(extent run) {
  assert(run.size > 0 && !beginning_at(run.offset));
  index added = make_node(run);
  index left, right;
  split(root_, run.offset, left, right);
  root_ = merge(merge(left, added), right);
  ++count_;
}

extent free_runs::remove(uint64_t offset) {
  index left, rest, middle, right;
  split(root_, offset, left, rest);
  split(rest, offset + 1, middle, right);
  assert(middle != none);
  extent run = nodes_[middle].run;
  spare_.push_back(middle);
  root_ = merge(left, right);
  --count_;
  return run;
}

std::optional<extent> free_runs::first_fit(uint64_t bytes) const {
  index at = root_;
  if (at == none || nodes_[at].largest < bytes)
    return std::nullopt;
  while (true) { // the subtree at `at` holds a run that is large enough
    const node& n = nodes_[at];
    if (n.left != none && nodes_[n.left].largest >= bytes)
      at = n.left;
    else if (n.run.size >= bytes)
      return n.run;
    else
      at = n.right;
  }
}

std::optional<extent> free_runs::ending_at(uint64_t offset) const {
  std::optional<extent> before;
  for (index at = root_; at != none;) {
    const node& n = nodes_[at];
    if (n.run.offset < offset) {
      before = n.run;
      at = n.right;
    } else {
      at = n.left;
    }
  }
  if (before && before->offset + before->size == offset)
    return before;
  return std::nullopt;
}

std::optional<extent> free_runs::beginning_at(uint64_t offset) const {
  for (index at = root_; at != none;) {
    const node& n = nodes_[at];
    if (n.run.offset == offset)
      return n.run;
    at = n.run.offset < offset ? n.right : n.left;
  }
  return std::nullopt;
}

} // namespace terrace
