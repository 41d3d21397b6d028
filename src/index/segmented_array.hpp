// An array that grows without moving what it has.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace terrace {

/// Segments of `segment_size` elements behind a directory. Growing takes one segment, whose elements are left
/// uninitialised and untouched; only the directory (a pointer a segment) is ever copied.
template <class T, size_t segment_size>
class segmented_array {
  static_assert((segment_size & (segment_size - 1)) == 0);
  static_assert(std::is_trivially_default_constructible_v<T>);

 public:
  T& operator[](size_t i) { return segments_[i / segment_size][i % segment_size]; }
  const T& operator[](size_t i) const { return segments_[i / segment_size][i % segment_size]; }

  size_t size() const { return size_; }

  void push_back(const T& element) {
    if (size_ == segments_.size() * segment_size)
      segments_.push_back(std::make_unique_for_overwrite<T[]>(segment_size));
    ++size_;
    (*this)[size_ - 1] = element;
  }

  size_t allocated_bytes() const {
    return segments_.size() * segment_size * sizeof(T) + segments_.capacity() * sizeof(segments_[0]);
  }

 private:
  std::vector<std::unique_ptr<T[]>> segments_;
  size_t size_ = 0;
};

} // namespace terrace
