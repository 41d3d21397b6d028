// Two classic allocators, for comparison only: no tier can be configured to use them. They keep no accounts,
// know no boundaries and place one object at a time, so their times are a lower bound of their cost as
// allocators.
#pragma once

#include "memory/allocator.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace terrace::bench {

/// The interface that `alloc_mixed` measures.
class object_space {
 public:
  virtual ~object_space() = default;
  virtual std::optional<extent> take(uint64_t bytes) = 0;
  virtual void give(const extent& e) = 0;
  virtual uint64_t capacity() const = 0;
  virtual uint64_t free_bytes() const = 0;
};

/// An arena of pages that counts its free pages.
class page_space : public object_space {
 public:
  explicit page_space(uint64_t capacity) : capacity_(capacity) {}
  uint64_t capacity() const override { return capacity_; }
  uint64_t free_bytes() const override { return free_pages_ * page; }

 protected:
  static constexpr uint64_t page = 4096;
  static constexpr uint32_t none = ~uint32_t{0};
  uint64_t capacity_;
  uint64_t free_pages_ = 0;
};

/// Two-level segregated fit (Masmano, Ripoll, Crespo, Real: "TLSF", ECRTS 2004): free runs in lists by size, 32 to each
/// power of two, two bitmaps to find one; boundary tags to join neighbours. Constant time.
class tlsf_baseline : public page_space {
 public:
  explicit tlsf_baseline(uint64_t capacity);
  std::optional<extent> take(uint64_t bytes) override;
  void give(const extent& e) override;

 private:
  static constexpr uint32_t second_bits = 5;
  static constexpr uint32_t lists = 32 << second_bits;
  struct run {
    uint32_t pages = 0;
    uint32_t before = none; ///< first page of the run that ends where this one begins
    uint32_t next = none, previous = none;
    bool is_free = false;
  };

  static uint32_t list_of(uint32_t pages);
  void link(uint32_t at);
  void unlink(uint32_t at);

  std::vector<run> runs_; ///< indexed by first page; a heap keeps its headers there
  std::array<uint32_t, lists> heads_;
  uint32_t first_level_ = 0;
  std::array<uint32_t, 32> second_level_{};
};

/// Binary buddies (Knuth, volume 1, algorithms 2.5 R and S): blocks of 2^k pages.
class buddy_baseline : public page_space {
 public:
  explicit buddy_baseline(uint64_t capacity); ///< `capacity` is a power of two of pages
  std::optional<extent> take(uint64_t bytes) override;
  void give(const extent& e) override;

 private:
  static constexpr uint8_t taken = 0xff;
  struct block {
    uint32_t next = none, previous = none;
    uint8_t order = taken; ///< order of the free block that begins here
  };

  void link(uint32_t at, uint32_t order);
  void unlink(uint32_t at);

  std::vector<block> blocks_;
  std::array<uint32_t, 33> heads_;
};

} // namespace terrace::bench
