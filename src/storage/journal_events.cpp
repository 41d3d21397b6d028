#include "storage/journal_events.hpp"

#include <algorithm>
#include <tuple>

namespace terrace {

void journal_events::settle() {
  auto earlier = [](const event& a, const event& b) {
    return std::tie(a.offset, a.generation, a.removes) < std::tie(b.offset, b.generation, b.removes);
  };
  std::sort(last_.begin(), last_.end(), earlier);
  size_t kept = 0;
  for (size_t i = 0; i < last_.size(); ++i)
    if (i + 1 == last_.size() || last_[i + 1].offset != last_[i].offset)
      last_[kept++] = last_[i];
  last_.resize(kept);
}

bool journal_events::has_later(const index_record& record) const {
  auto found = std::lower_bound(last_.begin(), last_.end(), record.offset,
                                [](const event& one, uint64_t offset) { return one.offset < offset; });
  return found != last_.end() && found->offset == record.offset && found->generation >= record.generation;
}

} // namespace terrace
