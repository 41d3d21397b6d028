// The digests of a prompt's whole chunks, shared by all holders of a part of them.
#pragma once

#include "base/digest.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

/// An immutable value. Cutting or extending a chain copies at most one segment and the list of segments,
/// however long the chain is; the result shares all other segments with the original. A copy shares the list
/// as well. Different threads may use copies.
class digest_chain {
 public:
  static constexpr size_t segment_digests = 64; ///< 2 KiB

  size_t size() const { return size_; }
  const digest& operator[](size_t i) const { return segment_at(i / segment_digests)[i % segment_digests]; }

  /// Returns the first `count` digests. Precondition: `count` <= `size`.
  digest_chain cut(size_t count) const;

  /// Returns these digests followed by `more`.
  digest_chain extended(std::span<const digest> more) const;

  /// Returns all digests from number `first` on in one contiguous vector, with capacity for `more` others.
  /// Precondition: `first` <= `size`.
  std::vector<digest> copy(size_t more = 0, size_t first = 0) const;

  /// Memory of the digests, counted as if they were not shared.
  uint64_t bytes() const;

 private:
  using segment = std::shared_ptr<const digest[]>;
  using segment_list = std::vector<segment>;

  size_t full_segments() const { return size_ / segment_digests; }
  const segment& segment_at(size_t number) const {
    return number < full_segments() ? (*full_)[number] : begun_;
  }

  std::shared_ptr<const segment_list> full_; ///< null: the chain is short, as most are, and needs no list
  /// the segment after the full ones; null: the chain ends with a full one
  segment begun_;
  /// digests in `begun_`; the segment may have more than belong to this chain
  uint32_t begun_digests_ = 0;
  uint32_t size_ = 0;
};

} // namespace terrace
