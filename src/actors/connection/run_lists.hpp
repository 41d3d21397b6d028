// The runs of a load or store, as its frame has them.
#pragma once

#include "actors/connection/connection.hpp"
#include "protocol/bounds.hpp"
#include "transfer/scatter_gather.hpp"

#include <functional>
#include <memory>
#include <span>

namespace terrace::actors {

/// Refers to the frame. Many runs are not copied: then the frame is kept.
struct run_lists {
  std::span<const region_run> runs;
  std::span<const uint32_t> per_object; ///< empty: one run each
  keep_alive frame;                     ///< null: they are few, and valid while the frame is
};

/// Of the request that is being served.
run_lists runs_of(connection& client, const protocol::run_vector& runs,
                  const flatbuffers::Vector<uint32_t>* runs_per_object);

/// Calls `then` with the runs, checked against the objects and the region: at once if they are few, otherwise in slices
/// between other messages. Refuses the request if they are wrong, or if it ends meanwhile.
void with_runs(connection& client, const connection::request& what, run_lists runs, batch_ptr objects,
               uint64_t region_bytes, std::function<void(std::shared_ptr<const scatter_gather>)> then);

} // namespace terrace::actors
