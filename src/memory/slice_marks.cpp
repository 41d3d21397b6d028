#include "memory/slice_marks.hpp"

#include <new>

namespace terrace {

namespace {
constexpr uint64_t bit_of(uint64_t slice, uint64_t word_bits) { return uint64_t{1} << slice % word_bits; }
} // namespace

bool slice_marks::add(uint64_t slice) {
  if (slice >= slices_)
    return false;
  std::call_once(once_, [this] {
    if (slices_ <= slices_max)
      made_.reset(new (std::nothrow) word[(slices_ - 1) / word_bits + 1]());
    words_.store(made_.get(), std::memory_order_release);
  });
  word* words = words_.load(std::memory_order_acquire);
  const uint64_t bit = bit_of(slice, word_bits);
  return words != nullptr && (words[slice / word_bits].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

bool slice_marks::has(uint64_t slice) const {
  const word* words = words_.load(std::memory_order_acquire);
  return words != nullptr && slice < slices_ &&
         (words[slice / word_bits].load(std::memory_order_relaxed) & bit_of(slice, word_bits)) != 0;
}

} // namespace terrace
