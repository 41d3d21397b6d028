// Verifies an object on disk against the index: its header and every byte of its payload.
#pragma once

#include "index/index_record.hpp"
#include "index/object_header.hpp"
#include "storage/aligned_buffer.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"

#include <optional>
#include <span>
#include <string>

namespace terrace {

enum class stored_state {
  intact,
  superseded, ///< another object was written over it: the extent was reused, and the removal did not reach the disk
  damaged, ///< no header, a damaged one, or a payload that does not match its header, and nothing was written over it
  unreadable, ///< the device returned an error
};

struct checked_object {
  stored_state state = stored_state::intact;
  std::string why; ///< empty if intact
  /// Bytes read from the extent; an object with a wrong header is not read to its end.
  uint64_t bytes_read = 0;
};

/// Each thread needs its own checker, because a checker has a buffer.
class object_checker {
 public:
  /// Objects are read in pieces of at most `piece_bytes`, in whole blocks. Device and superblock must outlive
  /// the checker.
  object_checker(volume_reader& from, const superblock& block, uint64_t piece_bytes = 4ULL << 20)
      : from_(from), block_(block), buffer_(piece_bytes) {}

  checked_object check(const index_record& object, const space_fingerprint& space);

 private:
  checked_object compare(const index_record& object, const space_fingerprint& space);
  /// True if a newer object begins inside the extent, or before it and reaches into it: its header, written
  /// before its payload, tells.
  bool overwritten(const index_record& object);
  /// Returns the header in a block, if it is one of this volume.
  std::optional<object_header> header_in(std::span<const std::byte> block) const;

  volume_reader& from_;
  const superblock& block_;
  aligned_buffer buffer_;
  uint64_t bare_begin_ = 0; ///< a search has shown that no header begins in [bare_begin_, bare_end_)
  uint64_t bare_end_ = 0;
};

} // namespace terrace
