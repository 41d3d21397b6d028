// An array that grows without moving its elements.
#pragma once

#include "base/large_pages.hpp"

#include <type_traits>
#include <vector>

namespace terrace {

/// Segments of 2 MiB with a directory. Growing adds one segment, whose pages are committed when first
/// written; only the directory (two words per segment) is ever copied. All segments except the first use huge
/// pages: a small array stays small.
template <class T>
class segmented_array {
  static_assert(std::is_trivially_copyable_v<T> && huge_memory::unit % sizeof(T) == 0);
  static constexpr size_t segment_size = huge_memory::unit / sizeof(T);
  static_assert((segment_size & (segment_size - 1)) == 0);

 public:
  T& operator[](size_t i) { return segment(i)[i % segment_size]; }
  const T& operator[](size_t i) const { return segment(i)[i % segment_size]; }

  size_t size() const { return size_; }

  void push_back(const T& element) {
    if (size_ == segments_.size() * segment_size)
      segments_.emplace_back(huge_memory::unit, !segments_.empty());
    ++size_;
    (*this)[size_ - 1] = element;
  }

  /// Mapped memory, including pages that were never written and so take no memory yet.
  size_t allocated_bytes() const {
    return segments_.size() * huge_memory::unit + segments_.capacity() * sizeof(segments_[0]);
  }

 private:
  T* segment(size_t i) const { return static_cast<T*>(segments_[i / segment_size].data()); }

  std::vector<huge_memory> segments_;
  size_t size_ = 0;
};

} // namespace terrace
