// Computes chunks whose size differs from the blocks of a trace.
#pragma once

#include "cli/failure.hpp"
#include "cli/trace.hpp"

#include <cstdint>
#include <vector>

namespace terrace::cli {

/// `chunk_tokens` must be a multiple of the trace's blocks or a whole part of one.
outcome<void> check_chunk_tokens(uint32_t chunk_tokens);

/// Returns the ids of the request's whole chunks, whose size was checked. A chunk of whole blocks has the id
/// of its last block, which identifies the prefix up to there; a part of a block has an id made from the
/// block's id and its position.
std::vector<uint64_t> chunk_ids(const trace_request& request, uint32_t chunk_tokens);

} // namespace terrace::cli
