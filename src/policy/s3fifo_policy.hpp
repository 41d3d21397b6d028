// S3-FIFO (Yang, Zhang, Qiu, Yue, Vinayak 2023).
#pragma once

#include "policy/arrival_queue.hpp"

namespace terrace {

/// A small queue for arrivals and a main queue, both first in, first out. An entry accessed more than once by
/// the time it reaches the end of the small queue moves to the main queue; an entry that returns while its
/// ghost is kept goes to the main queue directly. The main queue reinserts an entry once per access, at most
/// three times. The small queue gets half of the residents instead of the paper's tenth: chunks of a first
/// turn are not one-hit wonders, and a tenth loses several percentage points of hits on chats.
class s3fifo_policy : public eviction_policy {
 public:
  explicit s3fifo_policy(const policy_context& context)
      : eviction_policy(context), small_(context, marks_), main_(context, marks_) {}

  void on_insert(entry_index at) override;
  void on_hit(entry_index at, uint32_t before) override;
  void on_evict(entry_index at) override;
  void on_forget(entry_index at) override { marks_.set_bits(at, 0); }
  void add_candidate(entry_index at) override { (in_main(at) ? main_ : small_).add_candidate(at); }
  entry_index pop_victim() override;
  bool keeps_ghosts() const override { return true; }
  size_t bytes() const override { return marks_.bytes() + small_.bytes() + main_.bytes(); }

 private:
  // The three bits of an entry: one for the main queue, and two for accesses. A ghost has 1 if it left from
  // the small queue.
  static constexpr uint8_t main_bit = 4, uses_mask = 3, ghost = 1;
  bool in_main(entry_index at) const { return marks_.bits(at) & main_bit; }
  uint8_t uses(entry_index at) const { return marks_.bits(at) & uses_mask; }

  arrival_marks marks_;
  arrival_queue small_, main_;
  size_t in_small_ = 0;
};

inline void s3fifo_policy::on_insert(entry_index at) {
  bool returns = marks_.bits(at) == ghost;
  marks_.arrive(at);
  marks_.set_bits(at, returns ? main_bit : 0);
  (returns ? main_ : small_).push(at);
  in_small_ += !returns;
}

inline void s3fifo_policy::on_hit(entry_index at, uint32_t) {
  if (uses(at) < uses_mask)
    marks_.set_bits(at, static_cast<uint8_t>(marks_.bits(at) + 1));
}

inline void s3fifo_policy::on_evict(entry_index at) {
  in_small_ -= !in_main(at);
  marks_.set_bits(at, in_main(at) ? 0 : ghost);
  marks_.set_queued(at, false);
}

inline entry_index s3fifo_policy::pop_victim() {
  for (bool small_is_dry = false;;) {
    if (!small_is_dry && 2 * in_small_ >= context_.forest.residents()) {
      entry_index at = small_.pop_victim();
      if (at == no_entry) {
        small_is_dry = true;
      } else if (uses(at) > 1) {
        marks_.set_bits(at, main_bit);
        --in_small_;
        main_.push(at);
      } else {
        return at;
      }
      continue;
    }
    entry_index at = main_.pop_victim();
    if (at == no_entry)
      return small_.pop_victim();
    if (uses(at) == 0)
      return at;
    marks_.set_bits(at, static_cast<uint8_t>(marks_.bits(at) - 1));
    main_.push(at);
  }
}

} // namespace terrace
