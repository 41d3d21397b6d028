// The bytes of an input, taken one after the other; zeros once they have run out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace terrace::fuzz {

class input_bytes {
 public:
  explicit input_bytes(std::span<const uint8_t> all) : left_(all) {}

  bool empty() const { return left_.empty(); }
  uint8_t take() {
    uint8_t next = 0;
    if (!left_.empty()) {
      next = left_.front();
      left_ = left_.subspan(1);
    }
    return next;
  }
  std::span<const uint8_t> take(size_t count) {
    auto next = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(next.size());
    return next;
  }

 private:
  std::span<const uint8_t> left_;
};

} // namespace terrace::fuzz
