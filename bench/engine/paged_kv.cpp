#include "bench/engine/paged_kv.hpp"

namespace terrace::bench {

paged_kv::paged_kv(const model_shape& shape, size_t blocks)
    : block_bytes_(shape.block_floats() * sizeof(float)), blocks_(blocks) {
  for (size_t i = blocks; i-- != 0;)
    free_.push_back(static_cast<uint32_t>(i));
}

bool paged_kv::extend(std::vector<uint32_t>& table, size_t tokens) {
  size_t wanted = blocks_for(tokens);
  if (wanted > table.size() + free_.size())
    return false;
  while (table.size() < wanted) {
    table.push_back(free_.back());
    free_.pop_back();
  }
  return true;
}

void paged_kv::release(std::vector<uint32_t>& table) {
  free_.insert(free_.end(), table.rbegin(), table.rend());
  table.clear();
}

} // namespace terrace::bench
