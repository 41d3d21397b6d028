#include "actors/transfer/copier_pool.hpp"

#include <algorithm>

namespace terrace::actors {

namespace {
bool is_idle(const copier_pool::member& one) { return !one.load || one.load->idle(); }
} // namespace

const copier_actor& copier_pool::next() {
  const size_t first = turn_.fetch_add(1, std::memory_order_relaxed), all = members_.size();
  for (size_t i = 0; i < all; ++i)
    if (const member& one = members_[(first + i) % all]; is_idle(one))
      return one.copier;
  return members_[first % all].copier;
}

std::vector<copier_actor> copier_pool::some(size_t parts_max) {
  const size_t all = members_.size();
  const auto idle = static_cast<size_t>(std::count_if(members_.begin(), members_.end(), is_idle));
  const size_t most = std::min(parts_max, idle == all ? all : std::min(idle, all / 2));
  if (most < 2)
    return {next()};
  std::vector<copier_actor> chosen;
  const size_t first = turn_.fetch_add(most, std::memory_order_relaxed);
  for (size_t i = 0; i < all && chosen.size() < most; ++i)
    if (const member& one = members_[(first + i) % all]; is_idle(one))
      chosen.push_back(one.copier);
  if (chosen.empty()) // they have begun to serve meanwhile
    chosen.push_back(members_[first % all].copier);
  return chosen;
}

} // namespace terrace::actors
