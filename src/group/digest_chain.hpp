// The digests of a prompt's whole chunks, shared by all who have a part of them.
#pragma once

#include "base/digest.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

/// A value that does not change. A cut chain and an extended one share the segments of the original: neither copies more
/// than one segment, and the list of them, however long the chain is. A copy shares the list as well. Copies may be used by
/// different threads.
class digest_chain {
 public:
  static constexpr size_t segment_digests = 64; ///< 2 KiB

  size_t size() const { return size_; }
  const digest& operator[](size_t i) const { return segment_at(i / segment_digests)[i % segment_digests]; }

  /// The first `count` of them, which is at most `size`.
  digest_chain cut(size_t count) const;

  /// These, and `more` after them.
  digest_chain extended(std::span<const digest> more) const;

  /// All of them from the one with this number on, which is at most `size`, in one piece, with room for `more`.
  std::vector<digest> copy(size_t more = 0, size_t first = 0) const;

  /// Memory of the digests, as if nobody shared them.
  uint64_t bytes() const;

 private:
  using segment = std::shared_ptr<const digest[]>;
  using segment_list = std::vector<segment>;

  size_t full_segments() const { return size_ / segment_digests; }
  const segment& segment_at(size_t number) const {
    return number < full_segments() ? (*full_)[number] : begun_;
  }

  std::shared_ptr<const segment_list> full_; ///< null: a short chain, which most are, has no list
  segment begun_;                            ///< behind them; null: the chain ends with a full one
  uint32_t begun_digests_ = 0;               ///< in it, which may be more than belong to this chain
  uint32_t size_ = 0;
};

} // namespace terrace
