// A copy in parts, which several copiers do at the same time.
//
// Pure: a transfer asks a copier for each part and joins their answers.
#pragma once

#include "transfer/copy_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

/// Payload of a part, at least: 100 us of copying, beside which it costs little to wake a copier.
constexpr uint64_t copy_part_bytes_min = 1 << 20;

/// How many parts of that size it has; 1: it is not divided. A copy with checksums is divided between objects.
size_t copy_parts_max(const copy_request& what);

/// Contiguous parts of about as many bytes each, at most `count`; of a first load into a client's memory they begin at large pages where they can. They end together: the last one that is copied announces what
/// has arrived, and when one fails, the others stop.
std::vector<copy_request> parts_of(copy_request what, size_t count);

/// The answer to the whole. `answers`: of all parts, in their order.
copy_answer joined(std::vector<copy_answer> answers);

} // namespace terrace
