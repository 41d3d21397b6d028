// The notices that wait to be written to a tier below, and how many bytes of them are written at a time.
//
// Pure: used by one thread at a time.
#pragma once

#include "transfer/write_passage.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace terrace {

class write_line {
 public:
  /// `bytes_max`: payload in progress; a single larger notice is written alone.
  explicit write_line(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  void push(write_through_notice notice) { waiting_.push_back(std::move(notice)); }
  /// Before all that are not urgent, whose writers wait for nothing.
  void push_urgent(write_through_notice notice) {
    waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(urgent_), std::move(notice));
    ++urgent_;
  }

  /// The next to write, in progress until `done`. Nullopt: none waits, or there is no room.
  std::optional<write_passage> next() {
    if (waiting_.empty() || (bytes_ != 0 && bytes_ >= bytes_max_))
      return std::nullopt;
    std::optional<write_passage> first(std::in_place, std::move(waiting_.front()));
    waiting_.pop_front();
    urgent_ -= urgent_ == 0 ? 0 : 1;
    assert(bytes_ < bytes_max_ || bytes_ == 0);
    bytes_ += first->bytes();
    ++in_progress_;
    return first;
  }
  void done(const write_passage& passage) {
    assert(in_progress_ != 0 && bytes_ >= passage.bytes());
    bytes_ -= passage.bytes();
    --in_progress_;
  }

  bool idle() const { return waiting_.empty() && in_progress_ == 0; }

 private:
  uint64_t bytes_max_;
  std::deque<write_through_notice> waiting_;
  size_t urgent_ = 0;  ///< of these, at the front
  uint64_t bytes_ = 0; ///< in progress
  size_t in_progress_ = 0;
};

} // namespace terrace
