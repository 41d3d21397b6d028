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
  const digest& operator[](size_t i) const {
    return (*(*segments_)[i / segment_digests])[i % segment_digests];
  }

  /// The first `count` of them, which is at most `size`.
  digest_chain cut(size_t count) const;

  /// These, and `more` after them.
  digest_chain extended(std::span<const digest> more) const;

  /// All of them from the one with this number on, which is at most `size`, in one piece, with room for `more`.
  std::vector<digest> copy(size_t more = 0, size_t first = 0) const;

  /// Memory of the digests, as if nobody shared them.
  uint64_t bytes() const;

 private:
  using segment = std::vector<digest>;
  using segment_list = std::vector<std::shared_ptr<const segment>>;

  static const std::shared_ptr<const segment_list>& no_segments();

  std::shared_ptr<const segment_list> segments_ = no_segments(); ///< all but the last are full
  size_t size_ = 0; ///< the last segment may have more than belong to it
};

} // namespace terrace
