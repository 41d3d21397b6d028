// JOURNAL: keeps the index of one path of a disk tier on its disk (storage/index_journal.hpp decides what is written when). It writes
// and syncs through the ring of its home worker, one operation at a time and past the lines of the disk: what it writes is
// a hundredth of what the objects take, and nobody who stores waits for it.
//
// An operation that does not come back in `stall_after` is told to the path's disk (`journal_stalled`), which takes writing out
// of service until it does, and whoever waits for a clear is told that it is not durable.
//
// It asks the tier for its index, part by part, while it takes a checkpoint; changes that happen meanwhile are in the journal as
// well. Offsets in the file are those of its path; the tier and the disk set speak of the tier's arena.
#pragma once

#include "actors/disk/journal_messages.hpp"
#include "actors/interfaces.hpp"
#include "metrics/journal_probe.hpp"
#include "runtime/home.hpp"
#include "storage/extent_file.hpp"
#include "storage/index_journal.hpp"
#include "storage/volume_spaces.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace terrace::actors {

struct journal_arguments {
  std::shared_ptr<const extent_file> file;
  extent in_arena; ///< the path's part of the tier's arena
  journal_position position;
  volume_spaces spaces;
  std::shared_ptr<metrics::journal_probe> probe;
  disk_actor disk; ///< of the same path
  std::chrono::milliseconds stall_after{10'000};
  std::function<void(const std::string&)> warn; ///< one line when it begins to fail, one when it works again
};

journal_actor spawn_journal(caf::actor_system& system, const runtime::home& home,
                            journal_arguments arguments);

} // namespace terrace::actors
