// Maps inference requests of clients to requests of the eviction tracker.
#pragma once

#include "policy/eviction_tracker.hpp"

#include <cstdint>
#include <deque>
#include <unordered_map>

namespace terrace {

/// Clients choose the numbers of their inferences and need not report their ends. As many are kept as the
/// tracker keeps requests open; then the oldest is dropped.
class open_inferences {
 public:
  static constexpr size_t most = eviction_tracker::open_requests_max;

  bool contains(uint64_t inference) const { return numbers_.contains(inference); }

  /// Returns 0 if the inference has not begun, or has ended.
  request_number find(uint64_t inference) const {
    auto found = numbers_.find(inference);
    return found == numbers_.end() ? 0 : found->second;
  }

  /// Precondition: the inference is not open.
  void begin(uint64_t inference, request_number number) {
    numbers_[inference] = number;
    order_.push_back({inference, number});
    while (numbers_.size() > most || order_.size() > 2 * most) {
      const entry& oldest = order_.front();
      if (auto found = numbers_.find(oldest.inference);
          found != numbers_.end() && found->second == oldest.number)
        numbers_.erase(found);
      order_.pop_front();
    }
  }

  /// Returns the request of the inference; 0 if it is not open.
  request_number end(uint64_t inference) {
    request_number number = find(inference);
    numbers_.erase(inference);
    return number;
  }

  size_t size() const { return numbers_.size(); }

 private:
  struct entry {
    uint64_t inference;
    request_number number;
  };
  std::unordered_map<uint64_t, request_number> numbers_;
  std::deque<entry> order_; ///< in the order in which they began, including ended ones
};

} // namespace terrace
