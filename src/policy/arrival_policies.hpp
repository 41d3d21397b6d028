// The policies by order of arrival: sieve and fifo.
#pragma once

#include "policy/arrival_queue.hpp"

#include <array>

namespace terrace {

// SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi 2024).

/// One queue in order of arrival, and a hand that moves from the oldest to the youngest entry and starts
/// over. An entry accessed since the hand passed loses its mark and keeps its place; the first entry without
/// a mark is evicted. The entries ahead of and behind the hand are two queues here, which swap when the hand
/// starts over. On chats that is rare: entries accessed again stay while there are others, so the hit ratios
/// equal those of `lfu`.
class sieve_policy : public eviction_policy {
 public:
  explicit sieve_policy(const policy_context& context)
      : eviction_policy(context), queues_{arrival_queue(context, marks_), arrival_queue(context, marks_)} {}

  void on_insert(entry_index at) override {
    marks_.arrive(at);
    queues_[ahead_].push(at);
  }
  void on_hit(entry_index at, uint32_t) override { marks_.set_bits(at, 1); }
  void on_evict(entry_index at) override { marks_.set_queued(at, false); }
  void add_candidate(entry_index at) override { queues_[ahead_].add_candidate(at); }
  entry_index pop_victim() override {
    for (int rounds = 0; rounds < 3; ++rounds, ahead_ = 1 - ahead_)
      for (entry_index at; (at = queues_[ahead_].pop_victim()) != no_entry;) {
        if (marks_.bits(at) == 0) {
          if (queues_[ahead_].empty())
            ahead_ = 1 - ahead_; // before the next arrival, which is the last of the new round
          return at;
        }
        marks_.set_bits(at, 0);
        queues_[1 - ahead_].push(at);
      }
    return no_entry;
  }
  size_t bytes() const override { return marks_.bytes() + queues_[0].bytes() + queues_[1].bytes(); }

 private:
  arrival_marks marks_; ///< the bits: accessed since the hand passed
  std::array<arrival_queue, 2> queues_;
  size_t ahead_ = 0;
};

/// Suits streams without reuse, and serves as a baseline. It does not suit chats or agents: a frequently used
/// prefix is evicted as early as any other once its last suffix is gone.
class fifo_policy : public eviction_policy {
 public:
  explicit fifo_policy(const policy_context& context) : eviction_policy(context), queue_(context, marks_) {}

  void on_insert(entry_index at) override { marks_.arrive(at), queue_.push(at); }
  void on_evict(entry_index at) override { marks_.set_queued(at, false); }
  void add_candidate(entry_index at) override { queue_.add_candidate(at); }
  entry_index pop_victim() override { return queue_.pop_victim(); }
  bool parent_is_next_victim(entry_index parent) override { return !marks_.queued(parent); }
  size_t bytes() const override { return marks_.bytes() + queue_.bytes(); }

 private:
  arrival_marks marks_;
  arrival_queue queue_;
};

} // namespace terrace
