#include "policy/arrival_queue.hpp"

#include <utility>

namespace terrace {

uint8_t& arrival_marks::reach(entry_index at) {
  if (at >= reached_) {
    column_.reach(at + size_t{1});
    reached_ = (at / column_.page_elements + 1) * column_.page_elements;
  }
  return column_[at];
}

uint8_t arrival_marks::arrive(entry_index at) {
  uint8_t& mark = reach(at);
  uint8_t stay = (mark + 1) & stay_mask;
  mark = stay | queued_bit;
  return stay;
}

void arrival_marks::set_queued(entry_index at, bool queued) {
  uint8_t& mark = reach(at);
  mark = static_cast<uint8_t>(queued ? mark | queued_bit : mark & ~queued_bit);
}

void arrival_marks::set_bits(entry_index at, uint8_t bits) {
  uint8_t& mark = reach(at);
  mark = static_cast<uint8_t>((mark & (stay_mask | queued_bit)) | bits << bits_shift);
}

bool arrival_queue::present(uint32_t slot) const {
  entry_index at = entry_of(slot);
  return context_.forest.resident(at) && slot == slot_of(at);
}

void arrival_queue::push(entry_index at) {
  if (queue_.size() > 2 * context_.forest.residents() + 1024)
    sweep();
  marks_.set_queued(at, true);
  queue_.push(slot_of(at));
}

void arrival_queue::sweep() {
  auto old = std::exchange(queue_, {});
  for (; !old.empty(); old.pop())
    if (present(old.front()))
      queue_.push(old.front());
}

void arrival_queue::add_candidate(entry_index at) {
  if (marks_.queued(at))
    return;
  marks_.set_queued(at, true);
  overdue_.push(slot_of(at));
}

entry_index arrival_queue::pop_victim() {
  for (bool late = !overdue_.empty(); late || !queue_.empty(); late = !overdue_.empty()) {
    uint32_t slot = late ? overdue_.back() : queue_.front();
    late ? overdue_.pop() : queue_.pop();
    if (!present(slot))
      continue;
    marks_.set_queued(entry_of(slot), false);
    if (context_.forest.may_leave(entry_of(slot)))
      return entry_of(slot);
  }
  return no_entry;
}

} // namespace terrace
