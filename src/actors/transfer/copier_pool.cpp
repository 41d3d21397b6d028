#include "actors/transfer/copier_pool.hpp"

#include <algorithm>

namespace terrace::actors {

namespace {
/// With fewer copiers nothing is divided: they have no more processors than the worker and the client that wait for them, and
/// loads in parts were a tenth slower with two (decision 046).
constexpr size_t dividing_copiers = 4;

uint32_t requests_of(const copier_pool::member& one) { return one.load ? one.load->requests() : 0; }
} // namespace

const copier_actor& copier_pool::next() {
  const size_t first = turn_.fetch_add(1, std::memory_order_relaxed), all = members_.size();
  const member* least = &members_[first % all];
  uint32_t requests = requests_of(*least);
  for (size_t i = 1; i < all && requests != 0; ++i) {
    const member& one = members_[(first + i) % all];
    if (uint32_t its = requests_of(one); its < requests) {
      least = &one;
      requests = its;
    }
  }
  if (least->load)
    least->load->begins();
  return least->copier;
}

size_t copier_pool::parts_now(size_t parts_max) const {
  const size_t all = members_.size();
  if (parts_max == 1 || all < dividing_copiers)
    return 1;
  const auto idle = static_cast<size_t>(std::count_if(
      members_.begin(), members_.end(), [](const member& one) { return requests_of(one) == 0; }));
  const size_t most = idle == all ? all : std::min(idle, all / 2);
  return std::clamp<size_t>(parts_max, 1, std::max<size_t>(most, 1));
}

} // namespace terrace::actors
