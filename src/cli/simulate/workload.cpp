#include "cli/simulate/workload.hpp"

#include "base/object_key.hpp"

namespace terrace::simulate {

size_t workload::link_hash::operator()(const link& link_) const noexcept {
  return terrace::detail::fold_product(link_.id ^ 0xa0761d6478bd642fULL,
                                       link_.parent + 0xe7037ed1a0b428dbULL);
}

void workload::add(const request_facts& facts, std::span<const uint64_t> ids) {
  requests_.push_back({facts, accesses_.size(), static_cast<uint32_t>(ids.size())});
  input_tokens_ += facts.input_tokens;
  chunk parent = no_chunk;
  for (uint64_t id : ids) {
    auto [known, added] = by_link_.try_emplace(link{id, parent}, static_cast<chunk>(parents_.size()));
    if (added)
      parents_.push_back(parent);
    accesses_.push_back(parent = known->second);
  }
}

} // namespace terrace::simulate
