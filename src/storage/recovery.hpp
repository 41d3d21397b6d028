// Reconstructs a volume's index from its checkpoint and its journal. Everything is verified before it is
// used.
//
// Each extent offset has a history: objects were published there and removed again, each with a generation
// higher than all before it. The event with the highest generation determines what is there now; a removal is
// later than the publication with the same generation. So the order of reading does not matter, nor does it
// matter if events are read twice or are missing: at worst an object is missing, or an object is listed whose
// bytes have been overwritten, which its header reveals when it is read. Then:
//
// - objects with an unknown space or a forgotten epoch, or outside the arena, are dropped;
// - of overlapping objects the newest stays;
// - duplicates of one key are left to whoever builds the table of objects, where the newest counts as well.
#pragma once

#include "index/object_header.hpp"
#include "storage/index_journal.hpp"
#include "storage/volume_device.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace terrace {

// Tracks which blocks of an arena are allocated, to detect overlapping extents.

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

// Tens of millions of records in order.

/// The records of a volume, read by ascending generation, those of one generation as they were added. The records stay where
/// they are, because a copy of gigabytes takes longer than reading them in another order: each one is fetched into the
/// cache before it is reached.
class ordered_records {
 public:
  class iterator {
   public:
    iterator(const ordered_records& of, size_t at) : of_(&of), at_(at) {}
    const index_record& operator*() const { return (*of_)[at_]; }
    iterator& operator++() {
      of_->fetch(++at_);
      return *this;
    }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    const ordered_records* of_;
    size_t at_;
  };

  ordered_records() = default;
  ordered_records(std::vector<index_record> records) : records_(std::move(records)) { order(); }

  void reserve(size_t records) { records_.reserve(records); }
  /// Call `order` behind the last one, before anything is read.
  void add(const index_record& record) { records_.push_back(record); }
  /// Sorts pairs of generation and place, by the bits in which generations differ (radix sort).
  void order();

  size_t size() const { return by_place_ ? places_.size() : records_.size(); }
  bool empty() const { return size() == 0; }
  const index_record& operator[](size_t i) const { return records_[by_place_ ? places_[i] : i]; }
  /// Fetches what is read some steps after `i`.
  void fetch(size_t i) const {
    constexpr size_t ahead = 16;
    if (i + ahead < places_.size())
      for (size_t line = 0; line < sizeof(index_record); line += 64)
        __builtin_prefetch(reinterpret_cast<const std::byte*>(&records_[places_[i + ahead]]) + line);
  }
  iterator begin() const { return {*this, 0}; }
  iterator end() const { return {*this, size()}; }

  /// Removes the records for which `goes` is true; they are passed in order, or, before `order`, as they were added. Returns
  /// how many went.
  template <class Goes>
  size_t erase_if(Goes&& goes) {
    if (!by_place_)
      return std::erase_if(records_, goes);
    return std::erase_if(places_, [&](uint32_t at) { return goes(records_[at]); });
  }

 private:
  std::vector<index_record> records_;
  std::vector<uint32_t> places_; ///< the records in order
  bool by_place_ = false;        ///< otherwise the records are in order themselves
};

struct recovered_space {
  uint32_t number = 0; ///< as in the records
  space_fingerprint fingerprint{};
  friend bool operator==(const recovered_space&, const recovered_space&) = default;
};

/// Counts for the log and for tests.
struct recovery_counts {
  uint64_t bytes_read = 0;
  uint64_t journal_blocks = 0; ///< valid and current ones
  /// Torn, rotten or unreadable blocks, in the part of the journal that counts or in the checkpoint that was read.
  uint64_t damaged_blocks = 0;
  uint64_t missing_blocks = 0;  ///< missing in the checkpoint's image, or in the middle of the journal
  uint64_t damaged_records = 0; ///< invalid records in valid blocks; none unless a daemon wrote them so
  uint64_t forgotten = 0;       ///< objects of an epoch ended by a clear
  uint64_t outside = 0;         ///< objects beyond the end of a file that was shrunk
  uint64_t overlapping = 0;     ///< replaced by newer objects
  uint64_t unknown_space = 0;
};

struct recovered_volume {
  ordered_records objects;             ///< `publish` records
  std::vector<recovered_space> spaces; ///< the spaces that the objects refer to
  uint32_t next_space_number = 1;
  journal_position position;
  recovery_counts counts;
};

/// `arena_bytes` is the size of the arena in the present file. Reads sequentially, some MiB at a time; takes
/// about a second per few million objects. Never fails: unreadable parts are treated as missing and counted.
recovered_volume recover(volume_reader& from, const superblock& block, uint64_t arena_bytes);

} // namespace terrace
