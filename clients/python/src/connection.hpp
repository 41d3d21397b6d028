// Python's Connection: the functions that bind its methods.
#pragma once

#include "shared_connection.hpp"

#include <nanobind/nanobind.h>

#include <memory>

namespace terrace::python {

struct connection_handle {
  std::shared_ptr<shared_connection> in;
};

using connection_class = nb::class_<connection_handle>;

/// Binds connecting, spaces, regions and calls about the daemon as a whole.
connection_class bind_connection(nb::module_& in);

/// Binds lookups, leases, loads and stores, each in the form that waits and as a ticket.
void bind_requests(nb::module_& in, connection_class& to);

/// Binds `status` and `policies`, which return dictionaries.
void bind_reports(connection_class& to);

} // namespace terrace::python
