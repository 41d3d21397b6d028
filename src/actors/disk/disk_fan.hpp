// One request to the disks of a tier: each path's disk gets its part, and the answers come back as one.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"

#include <caf/actor.hpp>
#include <caf/error.hpp>

#include <cerrno>

namespace terrace::actors {

/// Parallel to the operations.
struct disks_answer {
  error failure;           ///< a disk failed as none should
  std::vector<int> failed; ///< 0 or an errno; EBUSY: its disk is out of service, and nothing was tried
  std::vector<bool> away; ///< it failed because its disk is out of service, and may be good once that is back
};

/// The offsets in `request` are those of the tier's arena. Calls `done` with a `disks_answer` when all disks have answered,
/// or `lost` once with a `caf::error` when one has ended.
template <class Self, class Done, class Lost>
void ask_disks(Self self, const disk_access& disk, const disk_request& request, Done done, Lost lost) {
  struct gathering {
    disks_answer all;
    size_t waiting_for = 0;
    bool lost = false;
  };
  auto gathered = std::make_shared<gathering>();
  gathered->all.failed.resize(request.operations.size());
  gathered->all.away.resize(request.operations.size());
  std::vector<disk_request> parts(disk.disks.size());
  std::vector<std::vector<size_t>> index(disk.disks.size());
  for (size_t i = 0; i < request.operations.size(); ++i) {
    const disk_operation& whole = request.operations[i];
    auto at = disk.paths->locate(whole.file_offset);
    parts[at.path].operations.push_back({at.file_offset, whole.memory, whole.bytes});
    index[at.path].push_back(i);
  }
  for (const auto& own : index)
    gathered->waiting_for += !own.empty();
  for (size_t path = 0; path < parts.size(); ++path) {
    if (index[path].empty())
      continue;
    disk_request& part = parts[path];
    part.direction = request.direction;
    part.urgency = request.urgency;
    part.context = request.context;
    part.owners = request.owners;
    self->request(disk.disks[path], caf::infinite, std::move(part))
        .then(
            [gathered, done, own = std::move(index[path])](const disk_answer& answer) mutable {
              bool refused = answer.failure.code == errc::busy;
              if (answer.failure.code != errc::ok && !refused)
                gathered->all.failure = answer.failure;
              for (size_t n = 0; n < own.size(); ++n) {
                int failed = refused ? EBUSY : answer.failure.code != errc::ok ? EIO : answer.failed[n];
                gathered->all.failed[own[n]] = failed;
                gathered->all.away[own[n]] = refused || (failed != 0 && answer.out_of_service);
              }
              if (--gathered->waiting_for == 0 && !gathered->lost)
                done(gathered->all);
            },
            [gathered, lost](const caf::error& why) mutable {
              if (!std::exchange(gathered->lost, true))
                lost(why);
            });
  }
}

} // namespace terrace::actors
