// Python's Connection: the parts that bind its methods.
#pragma once

#include "shared_connection.hpp"

#include <nanobind/nanobind.h>

#include <memory>

namespace terrace::python {

struct connection_handle {
  std::shared_ptr<shared_connection> in;
};

using connection_class = nb::class_<connection_handle>;

/// Connecting, spaces, regions and what concerns the daemon as a whole.
connection_class bind_connection(nb::module_& in);

/// Lookups, leases, loads and stores, each in the form that waits and as a ticket.
void bind_requests(nb::module_& in, connection_class& to);

/// What `status` and `policies` say, as dictionaries.
void bind_reports(connection_class& to);

} // namespace terrace::python
