#include "storage/generation_order.hpp"

#include <algorithm>
#include <array>

namespace terrace {

namespace {

constexpr unsigned digit_bits = 11; ///< the counters of a digit stay in the first-level cache
constexpr size_t digit_values = size_t{1} << digit_bits;

struct ordered {
  uint64_t generation;
  uint64_t place;
};

size_t digit_of(uint64_t generation, unsigned shift) { return generation >> shift & (digit_values - 1); }

/// One pass of a radix sort from the lowest digit up.
void sort_by_digit(const std::vector<ordered>& from, std::vector<ordered>& to, unsigned shift) {
  std::array<size_t, digit_values> begin{};
  for (const ordered& one : from)
    ++begin[digit_of(one.generation, shift)];
  size_t sum = 0;
  for (size_t& count : begin)
    sum += std::exchange(count, sum);
  for (const ordered& one : from)
    to[begin[digit_of(one.generation, shift)]++] = one;
}

} // namespace

void sort_by_generation(std::vector<index_record>& records) {
  auto older = [](const index_record& a, const index_record& b) { return a.generation < b.generation; };
  if (std::is_sorted(records.begin(), records.end(), older))
    return;
  std::vector<ordered> order(records.size()), other(records.size());
  uint64_t differing = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    order[i] = {records[i].generation, i};
    differing |= records[i].generation ^ records[0].generation;
  }
  for (unsigned shift = 0; shift < 64; shift += digit_bits)
    if (digit_of(differing, shift) != 0) {
      sort_by_digit(order, other, shift);
      order.swap(other);
    }
  other = {};
  std::vector<index_record> sorted;
  sorted.reserve(records.size());
  for (const ordered& one : order)
    sorted.push_back(records[one.place]);
  records = std::move(sorted);
}

} // namespace terrace
