// From the bytes of a frame's body to a table that may be used. Nothing reads a body before this.
#pragma once

#include "base/error.hpp"
#include "protocol/bounds.hpp"
#include "protocol/terrace_generated.h"

#include <cstdint>
#include <span>

namespace terrace::protocol {

/// Verifies that `body` holds a well-formed T (every offset inside the body, bounded depth and number of
/// tables), and then that its fields are within the bounds of bounds.hpp. The pointer is into `body`, without
/// a copy, and lives as long. Pure. Errors are `bad_request`, with what was expected.
///
/// Defined for every request and answer of terrace.fbs.
template <class T>
result<const T*> parse(std::span<const uint8_t> body);

} // namespace terrace::protocol
