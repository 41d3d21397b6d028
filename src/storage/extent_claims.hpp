// Tracks which blocks of an arena are allocated, to detect overlapping extents.
#pragma once

#include "index/object_header.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// One bit for each 4 KiB of the arena: 32 MiB for 1 TiB, and much faster than sorting millions of extents.
class extent_claims {
 public:
  explicit extent_claims(uint64_t arena_bytes) : words_(arena_bytes / disk_alignment_bytes / word_bits + 1) {}

  /// Claims whole blocks within the arena. Returns false and claims nothing if any of them is already
  /// claimed.
  bool claim(uint64_t offset, uint64_t bytes) {
    uint64_t first = offset / disk_alignment_bytes;
    uint64_t end = first + bytes / disk_alignment_bytes;
    if (!for_each_word(first, end,
                       [this](uint64_t word, uint64_t mask) { return (words_[word] & mask) == 0; }))
      return false;
    return for_each_word(first, end, [this](uint64_t word, uint64_t mask) {
      words_[word] |= mask;
      return true;
    });
  }

 private:
  static constexpr uint64_t word_bits = 64;

  template <class Use>
  static bool for_each_word(uint64_t first, uint64_t end, Use&& use) {
    while (first < end) {
      uint64_t word = first / word_bits;
      uint64_t low = first % word_bits;
      uint64_t count = end - first < word_bits - low ? end - first : word_bits - low;
      uint64_t mask = (count == word_bits ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << low;
      if (!use(word, mask))
        return false;
      first += count;
    }
    return true;
  }

  std::vector<uint64_t> words_;
};

} // namespace terrace
