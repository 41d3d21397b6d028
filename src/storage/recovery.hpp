// What a volume holds, found out from its checkpoint and its journal. Nothing is believed that was not checked.
//
// Each extent offset has a history: objects were published there and removed again, each with a generation higher than
// all before it. The event with the highest generation says what is there now, a removal being later than the
// publication of the same generation. So the order in which events are read does not matter, nor does it matter when
// some are read twice or were lost: at worst an object is missing, or one is named whose bytes have been overwritten
// since, which its header tells when it is read. Then:
//
// - objects whose space is not known, whose epoch is forgotten or which do not lie in the arena are left out;
// - where objects overlap, those of the newest generation stay;
// - what one key has twice is left to whoever puts the objects into a table: the newest counts there as well.
#pragma once

#include "storage/index_journal.hpp"
#include "storage/volume_reader.hpp"

#include <vector>

namespace terrace {

struct recovered_space {
  uint32_t number = 0; ///< as in the records
  space_fingerprint fingerprint{};
  friend bool operator==(const recovered_space&, const recovered_space&) = default;
};

/// For the log, and for tests.
struct recovery_counts {
  uint64_t bytes_read = 0;
  uint64_t journal_blocks = 0; ///< good ones that count
  uint64_t damaged_blocks =
      0; ///< torn, rotten or unreadable, in the journal or in the checkpoint that was read
  uint64_t missing_blocks = 0;  ///< of the checkpoint's image, or in the middle of the journal
  uint64_t damaged_records = 0; ///< in good blocks; none, unless a daemon wrote them so
  uint64_t forgotten = 0;       ///< of an epoch that a clear has ended
  uint64_t outside = 0;         ///< beyond the end of a file that was shrunk
  uint64_t overlapping = 0;     ///< had to give way to newer objects
  uint64_t unknown_space = 0;
};

struct recovered_volume {
  std::vector<index_record> objects;   ///< `publish` records, by ascending generation
  std::vector<recovered_space> spaces; ///< those that the objects name
  uint32_t next_space_number = 1;
  journal_position position;
  recovery_counts counts;
};

/// `arena_bytes`: of the extents, as the file is now. Reads sequentially, some MiB at a time; takes a second for some
/// millions of objects. Never fails: what cannot be read is missing, and counted.
recovered_volume recover(volume_reader& from, const superblock& block, uint64_t arena_bytes);

} // namespace terrace
