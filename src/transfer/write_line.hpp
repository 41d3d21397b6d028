// The notices that wait to be written to a tier below, and how many bytes of them are written at a time.
//
// Pure: used by one thread at a time.
#pragma once

#include "transfer/replaceable_line.hpp"
#include "transfer/write_plan.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace terrace {

class write_line {
 public:
  /// Notices of replaceable objects in progress at a time: others are not to wait for many small ones.
  static constexpr size_t replaceable_max = 8;

  /// `bytes_max`: payload in progress; a single larger notice is written alone.
  explicit write_line(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// Replaceable ones wait until `ripen`, and then take turns with the others.
  void push(write_through_notice notice) {
    if (notice.replaceable)
      replaceable_.push(std::move(notice));
    else
      waiting_.push_back(std::move(notice));
  }
  /// A replaceable one whose passage is done, and which could not write everything, because others wrote the same objects.
  void push_again(write_through_notice notice) { replaceable_.push_again(std::move(notice)); }
  /// The replaceable ones that wait now may be written.
  void ripen() { replaceable_.ripen(); }
  const replaceable_line& replaceable() const { return replaceable_; }
  /// Before all that are not urgent, whose writers wait for nothing.
  void push_urgent(write_through_notice notice) {
    waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(urgent_), std::move(notice));
    ++urgent_;
  }

  /// The next to write, in progress until `done`. Nullopt: none waits, or there is no room.
  std::optional<write_plan> next() {
    bool may_replaceable = replaceable_.has_next() && replaceable_in_progress_ < replaceable_max;
    if ((waiting_.empty() && !may_replaceable) || (bytes_ != 0 && bytes_ >= bytes_max_))
      return std::nullopt;
    bool replaceable = waiting_.empty() || (may_replaceable && urgent_ == 0 && replaceable_turn_);
    replaceable_turn_ = !replaceable;
    std::optional<write_plan> first;
    if (replaceable) {
      auto turn = replaceable_.next();
      first.emplace(std::move(turn->notice));
      first->drop_replaced(turn->current);
      ++replaceable_in_progress_;
    } else {
      first.emplace(std::move(waiting_.front()));
      waiting_.pop_front();
      urgent_ -= urgent_ == 0 ? 0 : 1;
    }
    assert(bytes_ < bytes_max_ || bytes_ == 0);
    bytes_ += first->bytes();
    ++in_progress_;
    return first;
  }
  void done(const write_plan& plan) {
    assert(in_progress_ != 0 && bytes_ >= plan.bytes());
    bytes_ -= plan.bytes();
    --in_progress_;
    replaceable_in_progress_ -= plan.replaceable() ? 1 : 0;
  }

  bool idle() const { return waiting_.empty() && replaceable_.empty() && in_progress_ == 0; }

 private:
  uint64_t bytes_max_;
  std::deque<write_through_notice> waiting_;
  size_t urgent_ = 0; ///< of these, at the front
  replaceable_line replaceable_;
  bool replaceable_turn_ = false; ///< whose turn it is
  size_t replaceable_in_progress_ = 0;
  uint64_t bytes_ = 0; ///< in progress
  size_t in_progress_ = 0;
};

} // namespace terrace
