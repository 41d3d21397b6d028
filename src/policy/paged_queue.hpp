// A queue in pages.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

namespace terrace {

/// First in, first out; at most two pages of slack.
template <class T>
class paged_queue {
 public:
  static constexpr size_t page_elements = 1024;

  void push(const T& value) {
    size_t place = head_ + size_++;
    if (place / page_elements == pages_.size())
      pages_.push_back(std::make_unique<T[]>(page_elements));
    pages_[place / page_elements][place % page_elements] = value;
  }
  const T& front() const { return pages_.front()[head_]; }
  void pop() {
    --size_;
    if (++head_ == page_elements) {
      pages_.pop_front();
      head_ = 0;
    }
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t bytes() const { return pages_.size() * (page_elements * sizeof(T) + sizeof(pages_[0])); }

 private:
  std::deque<std::unique_ptr<T[]>> pages_;
  size_t head_ = 0; ///< position in the first page
  size_t size_ = 0;
};

} // namespace terrace
