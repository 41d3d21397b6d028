#include "runtime/operation_pool.hpp"

namespace terrace::runtime {

actor_operation& operation_pool::take() {
  if (free_.empty()) {
    auto first = static_cast<uint32_t>(blocks_.size()) * block_size;
    blocks_.push_back(std::make_unique<actor_operation[]>(block_size));
    for (uint32_t i = block_size; i-- > 0;) {
      blocks_.back()[i].slot = first + i;
      free_.push_back(first + i);
    }
  }
  auto slot = free_.back();
  free_.pop_back();
  auto& record = blocks_[slot / block_size][slot % block_size];
  record.active = true;
  ++active_;
  return record;
}

void operation_pool::give_back(actor_operation& record) {
  record.active = false;
  ++record.generation;
  --active_;
  free_.push_back(record.slot);
}

actor_operation* operation_pool::find(operation_id id) {
  auto value = static_cast<uint64_t>(id);
  auto slot = static_cast<uint32_t>(value);
  if (ring_of(id) != ring_number_ || slot / block_size >= blocks_.size())
    return nullptr;
  auto& record = blocks_[slot / block_size][slot % block_size];
  if (!record.active || (record.generation & 0xffffff) != ((value >> 32) & 0xffffff))
    return nullptr;
  return &record;
}

} // namespace terrace::runtime
