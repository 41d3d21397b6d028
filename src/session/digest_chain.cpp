#include "session/digest_chain.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

const std::shared_ptr<const digest_chain::segment_list>& digest_chain::no_segments() {
  static const auto none = std::make_shared<const segment_list>();
  return none;
}

digest_chain digest_chain::cut(size_t count) const {
  assert(count <= size_);
  digest_chain part = *this;
  part.size_ = count;
  size_t segments = (count + segment_digests - 1) / segment_digests;
  if (segments < segments_->size()) // the others are not kept alive
    part.segments_ = std::make_shared<const segment_list>(
        segments_->begin(), segments_->begin() + static_cast<ptrdiff_t>(segments));
  return part;
}

digest_chain digest_chain::extended(std::span<const digest> more) const {
  if (more.empty())
    return *this;
  digest_chain longer;
  longer.size_ = size_ + more.size();
  segment_list list;
  list.reserve((longer.size_ + segment_digests - 1) / segment_digests);
  list = *segments_;
  size_t begun = size_ % segment_digests; // others may have continued the last segment in another way
  if (begun != 0) {
    const segment& shared = *list.back();
    size_t added = std::min(more.size(), segment_digests - begun);
    segment last;
    last.reserve(begun + added);
    last.assign(shared.begin(), shared.begin() + static_cast<ptrdiff_t>(begun));
    last.insert(last.end(), more.begin(), more.begin() + static_cast<ptrdiff_t>(added));
    list.back() = std::make_shared<const segment>(std::move(last));
    more = more.subspan(added);
  }
  while (!more.empty()) {
    auto part = more.first(std::min(more.size(), segment_digests));
    list.push_back(std::make_shared<const segment>(part.begin(), part.end()));
    more = more.subspan(part.size());
  }
  longer.segments_ = std::make_shared<const segment_list>(std::move(list));
  return longer;
}

std::vector<digest> digest_chain::copy(size_t more, size_t first) const {
  assert(first <= size_);
  std::vector<digest> all;
  all.reserve(size_ - first + more);
  for (size_t i = first; i < size_;) {
    auto part = std::span(*(*segments_)[i / segment_digests]).subspan(i % segment_digests);
    part = part.first(std::min(part.size(), size_ - i));
    all.insert(all.end(), part.begin(), part.end());
    i += part.size();
  }
  return all;
}

uint64_t digest_chain::bytes() const {
  uint64_t bytes = sizeof(segment_list) + segments_->capacity() * sizeof segments_->front();
  for (const auto& part : *segments_)
    bytes += sizeof(segment) + part->capacity() * sizeof(digest);
  return bytes;
}

} // namespace terrace
