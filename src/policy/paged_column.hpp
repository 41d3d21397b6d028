// An array that grows page by page: nothing moves, and at most one page is unused.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace terrace {

/// A `std::vector` doubles its capacity, so half of it may be unused, and the copy stalls its owner. A column
/// has at most one page of slack. Elements are value-initialized.
template <class T, size_t PageElements = 2048>
class paged_column {
 public:
  static constexpr size_t page_elements = PageElements;

  T& operator[](size_t i) { return pages_[i / page_elements][i % page_elements]; }
  const T& operator[](size_t i) const { return pages_[i / page_elements][i % page_elements]; }

  /// Makes elements 0 to `count` - 1 exist. Frees pages beyond `count` elements, but keeps one more page, so
  /// that a size near a page boundary costs nothing.
  void reach(size_t count) {
    while (pages_.size() * page_elements < count)
      pages_.push_back(std::make_unique<T[]>(page_elements));
  }

  /// Gives back all unused pages but one, so that a size that varies around the edge of a page costs nothing.
  void trim(size_t count) {
    while (pages_.size() > count / page_elements + 2)
      pages_.pop_back();
  }

  size_t bytes() const {
    return pages_.size() * page_elements * sizeof(T) + pages_.capacity() * sizeof(pages_[0]);
  }

 private:
  std::vector<std::unique_ptr<T[]>> pages_;
};

/// A stack on a paged_column.
template <class T, size_t PageElements = 2048>
class paged_stack {
 public:
  void push(const T& value) {
    column_.reach(size_ + 1);
    column_[size_++] = value;
  }
  void pop() { column_.trim(--size_); }
  T& back() { return column_[size_ - 1]; }
  T& operator[](size_t i) { return column_[i]; }
  const T& operator[](size_t i) const { return column_[i]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t bytes() const { return column_.bytes(); }

 private:
  paged_column<T, PageElements> column_;
  size_t size_ = 0;
};

} // namespace terrace
