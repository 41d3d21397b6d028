// Verifies the bytes of a frame's body and returns its table. A body is never read before this.
#pragma once

#include "base/error.hpp"
#include "protocol/bounds.hpp"
#include "protocol/kinds.hpp"
#include "protocol/terrace_generated.h"

#include <cstdint>
#include <span>

namespace terrace::protocol {

// The tables of each verb by its kind: `tables_of<kind::lookup>::request` is wire::Lookup.

template <kind Request>
struct tables_of;

#define TERRACE_VERB(NAME, TABLE, ...)                                                                       \
  template <>                                                                                                \
  struct tables_of<kind::NAME> {                                                                             \
    using request = wire::TABLE;                                                                             \
    using answer = wire::TABLE##Answer;                                                                      \
  };
#include "protocol/verbs.def"

template <kind Request>
using request_table = typename tables_of<Request>::request;

template <kind Request>
using answer_table = typename tables_of<Request>::answer;

/// Verifies that `body` contains a well-formed T (every offset inside the body, limited depth and number of
/// tables), and that its fields are within the bounds of bounds.hpp. The pointer refers to `body`, without a
/// copy. Pure. Errors are `bad_request`, with what was expected.
///
/// Defined for every request and answer of terrace.fbs.
template <class T>
result<const T*> parse(std::span<const uint8_t> body);

/// The first half of `parse`: the fields of the table may be out of bounds. Used for answers about a refused request.
template <class T>
result<const T*> well_formed(std::span<const uint8_t> body);

} // namespace terrace::protocol
