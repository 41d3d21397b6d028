#include "index/transfer_scope.hpp"

#include <iterator>
#include <numeric>

namespace terrace {

result<chunk_range> checked_range(size_t total, uint32_t first, uint32_t count) {
  if (first > total || count > total - first)
    return fail(errc::bad_request, "chunks " + std::to_string(first) + " to " +
                                       std::to_string(uint64_t{first} + count) +
                                       " were asked for, there are " + std::to_string(total));
  return chunk_range{first, count == 0 ? total - first : count};
}

result<pool_list> checked_pools(const space_spec& spec, std::span<const uint8_t> named, size_t chunks) {
  pool_list pools(named.begin(), named.end());
  if (pools.empty()) {
    pools.resize(spec.pools.size());
    std::iota(pools.begin(), pools.end(), uint16_t{0});
  }
  if (pools.back() >= spec.pools.size())
    return fail(errc::bad_request, "pool number " + std::to_string(pools.back()) +
                                       " was asked for, the space has " + std::to_string(spec.pools.size()) +
                                       " pools");
  if (chunks > transfer_objects_max / pools.size())
    return fail(errc::bad_request, std::to_string(chunks) + " chunks in " + std::to_string(pools.size()) +
                                       " pools were asked for; at most " +
                                       std::to_string(transfer_objects_max) +
                                       " objects may be in one request: ask for fewer chunks or pools");
  return pools;
}

prefix_object transfer_scope::object(size_t number, const space_spec& spec, uint16_t rank) const {
  uint16_t pool = pools[number % pools.size()];
  return {static_cast<uint32_t>(range.first + number / pools.size()), pool,
          spec.pools[pool].replicated ? uint16_t{0} : rank};
}

chunk_prefix part_of(const chunk_prefix& whole, const chunk_range& range) {
  chunk_prefix part;
  auto first = whole.chunks.begin() + static_cast<std::ptrdiff_t>(range.first);
  part.chunks.assign(first, first + static_cast<std::ptrdiff_t>(range.count));
  part.parent = range.first == 0 ? whole.parent : *std::prev(first);
  if (range.first + range.count == whole.chunks.size())
    part.tail_tokens = whole.tail_tokens;
  return part;
}

} // namespace terrace
