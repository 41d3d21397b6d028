// First in, first out: hits are ignored.
#pragma once

#include "policy/arrival_queue.hpp"

namespace terrace {

/// For streams without reuse, and as a yardstick. Not for chats or agents: a hot prefix goes as early as a cold one
/// once its last suffix has gone.
class fifo_order : public eviction_order {
 public:
  explicit fifo_order(const order_context& context) : eviction_order(context), queue_(context, marks_) {}

  void entered(entry_index at) override { marks_.arrive(at), queue_.push(at); }
  void left(entry_index at) override { marks_.set_queued(at, false); }
  void exposed(entry_index at) override { queue_.exposed(at); }
  entry_index pick() override { return queue_.pick(); }
  bool follows(entry_index parent) override { return !marks_.queued(parent); }
  size_t bytes() const override { return marks_.bytes() + queue_.bytes(); }

 private:
  arrival_marks marks_;
  arrival_queue queue_;
};

} // namespace terrace
