// What a trust group's disk will forget at the next start, told before it happens.
#pragma once

#include "actors/supervision/group_plan.hpp"
#include "storage/offline_volume.hpp"

#include <string>
#include <vector>

namespace terrace::actors {

/// Names the files that are to be smaller than before, with what is lost. Only reads, also while a daemon uses the
/// disk. Blocks.
inline std::vector<std::string> describe_shrinking(const group_plan& plan) {
  return plan.disk ? terrace::describe_shrinking(files_of(plan, {})) : std::vector<std::string>();
}

} // namespace terrace::actors
