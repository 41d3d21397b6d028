#include "simulate/chunk_order.hpp"

namespace terrace::simulate {

chunk_order::chunk_order(const workload& of, std::unique_ptr<eviction_policy> policy, uint64_t object_bytes)
    : of_(of), policy_(std::move(policy)), object_bytes_(object_bytes), pinned_(of.distinct_chunks()),
      may_leave_([this](entry_key key) { return !pinned_[chunk_of(key)]; }) {}

entry_key chunk_order::key_of(chunk which) {
  if (which == no_chunk)
    return {};
  return {uint64_t{which} + 1, terrace::detail::mix64(uint64_t{which} + 1)};
}

void chunk_order::insert(chunk which, uint64_t now_ns) {
  policy_->insert({key_of(which), key_of(of_.parent(which)), object_bytes_}, now_ns);
}

void chunk_order::hit(chunk which, uint64_t now_ns) { policy_->hit(key_of(which), now_ns); }

void chunk_order::erase(chunk which) {
  policy_->erase(key_of(which));
  pinned_[which] = false;
}

std::vector<chunk> chunk_order::victims(uint64_t bytes, uint64_t now_ns) {
  std::vector<chunk> named;
  for (const victim& v : policy_->victims(bytes, may_leave_, now_ns))
    named.push_back(chunk_of(v.key));
  return named;
}

} // namespace terrace::simulate
