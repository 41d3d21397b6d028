// DISK: one file of extents, that of one path of a disk tier. It submits reads and writes to the ring of its
// home worker and answers when they are done.
//
// The request's owners keep every byte that the kernel accesses until its last operation has completed,
// whichever actor has ended.
//
// storage/disk/disk_path.hpp decides whether the path is in service, and what is tried when.
#pragma once

#include "actors/interfaces.hpp"
#include "memory/arena.hpp"
#include "metrics/disk_probe.hpp"
#include "runtime/home.hpp"
#include "storage/disk/disk_path.hpp"
#include "storage/disk/disk_service.hpp"
#include "storage/disk/path_journal.hpp"
#include "storage/extent_file.hpp"
#include "storage/index_journal.hpp"
#include "storage/volume_spaces.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

struct disk_arguments {
  disk_path_arguments path;
  std::vector<std::shared_ptr<const arena>> segments; ///< memory to register as fixed buffers
  std::function<void(const std::string&)>
      warn; ///< writes one line when the device goes out of service, and one when it is back
};

disk_actor spawn_disk(caf::actor_system& system, const runtime::home& home, disk_arguments arguments);

// JOURNAL: persists the index of one path of a disk tier (storage/index_journal.hpp decides what is written
// when). It writes and syncs through the ring of its home worker, one operation at a time, and bypasses the
// queues of the disk: it writes a hundredth of the objects' bytes, and stores do not wait for it.
//
// An operation that does not complete within `stall_after` is reported to the path's disk
// (`journal_stalled`), which takes writing out of service until it does; pending clears are answered as not
// durable.
//
// While the journal takes a checkpoint, it requests the index from the tier, part by part; changes that
// happen meanwhile are in the journal as well. Offsets in the file are those of its path; the tier and the
// disk set use those of the tier's arena.

struct journal_arguments {
  std::shared_ptr<const extent_file> file;
  extent in_arena; ///< the path's part of the tier's arena
  journal_position position;
  volume_spaces spaces;
  std::shared_ptr<metrics::journal_probe> probe;
  disk_actor disk; ///< disk of the same path
  std::chrono::milliseconds stall_after{10'000};
  /// Receives what the index has no room for; null: nobody does.
  std::shared_ptr<disk_service> service;
  size_t path = 0; ///< number of the path in the volume
  /// Writes one line when it starts to fail, and one when it works again.
  std::function<void(const std::string&)> warn;
};

journal_actor spawn_journal(caf::actor_system& system, const runtime::home& home,
                            journal_arguments arguments);

} // namespace terrace::actors
