#include "memory/segmented_arena.hpp"

#include <algorithm>

namespace terrace {

result<segmented_arena> segmented_arena::create(const segmented_arena_options& options) {
  if (options.segment_bytes == 0 || options.segment_bytes > 1ULL << 30)
    return fail(errc::bad_request, "segment_bytes is " + std::to_string(options.segment_bytes) +
                                       "; expected 1 to 1073741824 (1 GiB)");
  segmented_arena made;
  made.segment_bytes_ = std::min(options.segment_bytes, options.bytes);
  for (uint64_t at = 0; at < options.bytes; at += made.segment_bytes_) {
    auto segment = arena::create({.name = options.name + "-" + std::to_string(made.segments_.size()),
                                  .bytes = std::min(made.segment_bytes_, options.bytes - at),
                                  .huge_pages = options.huge_pages});
    if (!segment)
      return tl::unexpected(segment.error());
    made.segments_.push_back(std::move(*segment));
  }
  if (made.segments_.empty())
    return fail(errc::bad_request, "an arena needs at least 4096 bytes, 0 were asked for");
  made.size_ = options.bytes;
  return made;
}

result<bool> segmented_arena::prefault(uint64_t bytes) {
  if (prefaulting_ < segments_.size()) {
    auto done = segments_[prefaulting_].prefault(bytes);
    if (!done)
      return done;
    if (*done)
      ++prefaulting_;
  }
  return prefaulting_ == segments_.size();
}

} // namespace terrace
