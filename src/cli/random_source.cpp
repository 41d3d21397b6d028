
#include "cli/random_source.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace terrace::cli {

namespace {

constexpr size_t word_bytes = sizeof(uint64_t);
constexpr size_t words_at_once = 512; // 4 KiB: one branch per page while nothing is wrong

uint64_t seed_of(const digest& key) { return XXH3_64bits(key.bytes.data(), key.bytes.size()); }

/// Half of splitmix64: one multiplication per word makes it fast. These bytes need not look random; they need
/// to differ between positions and between seeds, which are hashes already.
uint64_t word_at(uint64_t seed, size_t i) {
  uint64_t x = seed + (i + 1) * splitmix64_step;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 27);
}

uint64_t count_wrong_one_by_one(std::span<const std::byte> bytes, uint64_t seed, size_t first_word) {
  uint64_t wrong = 0;
  for (size_t at = 0; at < bytes.size(); at += word_bytes) {
    uint64_t expected = word_at(seed, first_word + at / word_bytes);
    size_t length = std::min(word_bytes, bytes.size() - at);
    for (size_t i = 0; i < length; ++i)
      wrong += bytes[at + i] != static_cast<std::byte>(expected >> (8 * i));
  }
  return wrong;
}

} // namespace

void fill_content(std::span<std::byte> bytes, const digest& key) {
  uint64_t seed = seed_of(key);
  size_t words = bytes.size() / word_bytes;
  for (size_t i = 0; i < words; ++i) {
    uint64_t word = word_at(seed, i);
    std::memcpy(bytes.data() + i * word_bytes, &word, word_bytes);
  }
  if (size_t rest = bytes.size() % word_bytes; rest != 0) {
    uint64_t word = word_at(seed, words);
    std::memcpy(bytes.data() + words * word_bytes, &word, rest);
  }
}

uint64_t count_wrong_bytes(std::span<const std::byte> bytes, const digest& key) {
  uint64_t seed = seed_of(key);
  size_t words = bytes.size() / word_bytes;
  uint64_t wrong = 0;
  size_t i = 0;
  for (; i + words_at_once <= words; i += words_at_once) {
    uint64_t difference = 0;
    for (size_t j = i; j < i + words_at_once; ++j) {
      uint64_t found;
      std::memcpy(&found, bytes.data() + j * word_bytes, word_bytes);
      difference |= found ^ word_at(seed, j);
    }
    if (difference != 0)
      wrong += count_wrong_one_by_one(bytes.subspan(i * word_bytes, words_at_once * word_bytes), seed, i);
  }
  return wrong + count_wrong_one_by_one(bytes.subspan(i * word_bytes), seed, i);
}

} // namespace terrace::cli
