// First in, first out: hits are ignored.
#pragma once

#include "policy/arrival_queue.hpp"

namespace terrace {

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
