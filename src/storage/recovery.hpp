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

#include "storage/index_journal.hpp"
#include "storage/volume_reader.hpp"

#include <vector>

namespace terrace {

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
  std::vector<index_record> objects;   ///< `publish` records by ascending generation
  std::vector<recovered_space> spaces; ///< the spaces that the objects refer to
  uint32_t next_space_number = 1;
  journal_position position;
  recovery_counts counts;
};

/// `arena_bytes` is the size of the arena in the present file. Reads sequentially, some MiB at a time; takes
/// about a second per few million objects. Never fails: unreadable parts are treated as missing and counted.
recovered_volume recover(volume_reader& from, const superblock& block, uint64_t arena_bytes);

} // namespace terrace
