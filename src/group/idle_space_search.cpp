#include "group/idle_space_search.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

bool idle_space_search::apply(const idle_spaces_answer& named) {
  if (named.idle.empty() || looked_ >= named.known)
    return false;
  looked_ += named.idle.size();
  looked_at_all_ = named.idle.size() < empty_spaces_request::spaces_max;
  empty_ = named.idle;
  std::sort(empty_.begin(), empty_.end(),
            [](const idle_space& a, const idle_space& b) { return a.id < b.id; });
  next_tier_ = 0;
  return true;
}

std::optional<size_t> idle_space_search::next_tier(size_t tiers) {
  if (empty_.empty() || next_tier_ == tiers)
    return std::nullopt;
  return next_tier_++;
}

empty_spaces_request idle_space_search::question() const {
  assert(empty_.size() <= empty_spaces_request::spaces_max);
  empty_spaces_request request;
  for (const idle_space& one : empty_)
    request.of.push_back(one.id);
  return request;
}

void idle_space_search::apply(const empty_spaces_answer& answer) {
  std::erase_if(empty_, [&](const idle_space& one) {
    return !std::binary_search(answer.empty.begin(), answer.empty.end(), one.id);
  });
}

} // namespace terrace
