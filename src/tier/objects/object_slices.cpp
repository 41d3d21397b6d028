#include "tier/objects/object_slices.hpp"

namespace terrace {

batch_ptr slice(const batch_ptr& all, size_t begin, size_t end) {
  if (begin == 0 && end == all->size())
    return all;
  auto part = std::make_shared<object_batch>();
  auto cut = [&](const auto& from, auto& to) {
    to.assign(from.begin() + static_cast<ptrdiff_t>(begin), from.begin() + static_cast<ptrdiff_t>(end));
  };
  cut(all->keys, part->keys);
  cut(all->parents, part->parents);
  cut(all->payload_bytes, part->payload_bytes);
  part->trailing = all->trailing;
  return part;
}

} // namespace terrace
