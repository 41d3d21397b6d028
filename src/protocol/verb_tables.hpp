// The tables of each verb by its kind: `tables_of<kind::lookup>::request` is wire::Lookup.
#pragma once

#include "protocol/kinds.hpp"
#include "protocol/terrace_generated.h"

namespace terrace::protocol {

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

} // namespace terrace::protocol
