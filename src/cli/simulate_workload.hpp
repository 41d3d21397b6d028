// Converts a trace into the chunks that a daemon would see.
#pragma once

#include "cli/simulate/workload.hpp"
#include "cli/trace.hpp"

namespace terrace::cli {

/// Treats the traces as requests of several spaces to one daemon, in order of time. Every trace begins at the
/// same time.
trace merge_traces(std::vector<trace> several);

/// Divides each request into whole chunks of `chunk_tokens`, a multiple of the trace's blocks or a fraction
/// of one; the rest is in no chunk. Parts of a block that is not full are treated as unique to the request,
/// because the trace does not say who shares them.
outcome<simulate::workload> to_workload(const trace& requests, uint32_t chunk_tokens);

} // namespace terrace::cli
