#include "transfer/write_through_messages.hpp"

#include "tier/objects/object_hold.hpp"
#include "transfer/windows.hpp"

#include <cassert>
#include <utility>

namespace terrace {

std::vector<write_through_notice> parts_of(write_through_notice whole, size_t objects_per_chunk,
                                           uint64_t bytes_max) {
  assert(!whole.ended);
  std::vector<write_through_notice> parts;
  const size_t all = whole.objects->size();
  for (size_t begin = 0; begin != all;) {
    auto window = window_at(whole.objects, objects_per_chunk, begin, bytes_max);
    if (begin == 0 && window.end == all) {
      parts.push_back(std::move(whole));
      break;
    }
    auto sums = whole.checksums.begin();
    write_through_notice& part = parts.emplace_back();
    part.space = whole.space;
    part.objects = window.objects;
    part.held = part_of(whole.held, begin, window.end);
    part.credit = whole.credit;
    part.replaceable = whole.replaceable;
    if (!whole.checksums.empty())
      part.checksums.assign(sums + static_cast<ptrdiff_t>(begin), sums + static_cast<ptrdiff_t>(window.end));
    begin = window.end;
  }
  return parts;
}

} // namespace terrace
