// The bytes that were received and not yet parsed.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace terrace::resp {

/// A parser reads `bytes`, drops what it has parsed, and bounds what it lets grow. Pure; one thread.
class receive_buffer {
 public:
  explicit receive_buffer(size_t bytes) : usual_bytes_(bytes), buffer_(bytes) {}

  /// Returns the free space, never empty. What `bytes` returned becomes invalid.
  std::span<char> write_area() {
    if (begin_ != 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == 0 && buffer_.size() > usual_bytes_) {
      buffer_.resize(usual_bytes_); // whatever needed more is over
      buffer_.shrink_to_fit();
    }
    if (end_ == buffer_.size())
      buffer_.resize(2 * buffer_.size());
    return {buffer_.data() + end_, buffer_.size() - end_};
  }
  void commit(size_t bytes) {
    assert(bytes <= buffer_.size() - end_);
    end_ += bytes;
  }

  std::string_view bytes() const { return {buffer_.data() + begin_, end_ - begin_}; }
  void drop(size_t bytes) {
    assert(bytes <= end_ - begin_);
    begin_ += bytes;
  }

 private:
  size_t usual_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
};

} // namespace terrace::resp
