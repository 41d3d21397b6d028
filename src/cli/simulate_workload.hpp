// A trace as the chunks that a daemon would see.
#pragma once

#include "cli/trace.hpp"
#include "simulate/workload.hpp"

namespace terrace::cli {

/// As requests of so many spaces to one daemon, in the order of their times. Every trace begins at the same moment.
trace merge_traces(std::vector<trace> several);

/// Cuts each request into whole chunks of `chunk_tokens`, which must be a multiple of the trace's blocks or a whole part
/// of one; what is left at the end is in no chunk. Parts of a block that is not full are taken as this request's own:
/// the trace does not say who shares them.
outcome<simulate::workload> to_workload(const trace& requests, uint32_t chunk_tokens);

} // namespace terrace::cli
