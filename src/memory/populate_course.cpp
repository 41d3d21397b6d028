#include "memory/populate_course.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

populate_course::populate_course(uint64_t region_bytes)
    : region_bytes_(region_bytes), mapped_((region_bytes + slice_bytes - 1) / slice_bytes) {}

uint64_t populate_course::bytes_of(size_t number) const {
  return std::min(slice_bytes, region_bytes_ - number * slice_bytes);
}

bool populate_course::is_whole(size_t number) const {
  return mapped_[number] * page_bytes >= bytes_of(number); // the last page may end beyond the region
}

bool populate_course::begin(uint64_t present_bytes) {
  new_bytes_ = 0;
  slices_left_ = 0;
  present_bytes_ = present_bytes;
  if (whole() || present_bytes <= mapped_bytes_)
    return false;
  slices_left_ = mapped_.size();
  looked_at_left_ = std::max(looked_at_least, std::min(present_bytes, region_bytes_) * looked_at_per_present);
  return true;
}

std::optional<populate_course::slice> populate_course::next() {
  for (; slices_left_ != 0; --slices_left_) {
    size_t now = at_;
    uint64_t bytes = bytes_of(now);
    bool skipped = is_whole(now);
    if (!skipped && (mapped_bytes_ >= present_bytes_ || looked_at_left_ < bytes))
      break;
    at_ = at_ + 1 == mapped_.size() ? 0 : at_ + 1;
    if (skipped)
      continue;
    looked_at_left_ -= bytes;
    --slices_left_;
    return slice{now * slice_bytes, bytes};
  }
  slices_left_ = 0;
  return std::nullopt;
}

void populate_course::add(const slice& what, uint64_t pages) {
  assert(what.offset % slice_bytes == 0 && pages <= slice_bytes / page_bytes);
  size_t number = what.offset / slice_bytes;
  bool before = is_whole(number);
  new_bytes_ += pages > mapped_[number] ? (pages - mapped_[number]) * page_bytes : 0;
  mapped_bytes_ += pages * page_bytes;
  mapped_bytes_ -= mapped_[number] * page_bytes;
  mapped_[number] = static_cast<uint16_t>(pages);
  whole_slices_ += is_whole(number) ? 1 : 0;
  whole_slices_ -= before ? 1 : 0;
}

} // namespace terrace
