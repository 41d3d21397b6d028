#include "policy/s3fifo_policy.hpp"

namespace terrace {

void s3fifo_policy::on_insert(entry_index at) {
  bool returns = marks_.bits(at) == ghost;
  marks_.arrive(at);
  marks_.set_bits(at, returns ? main_bit : 0);
  (returns ? main_ : small_).push(at);
  in_small_ += !returns;
}

void s3fifo_policy::on_hit(entry_index at, uint32_t) {
  if (uses(at) < uses_mask)
    marks_.set_bits(at, static_cast<uint8_t>(marks_.bits(at) + 1));
}

void s3fifo_policy::on_evict(entry_index at) {
  in_small_ -= !in_main(at);
  marks_.set_bits(at, in_main(at) ? 0 : ghost);
  marks_.set_queued(at, false);
}

entry_index s3fifo_policy::pop_victim() {
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
