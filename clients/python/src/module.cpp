// The compiled half of the package: libterrace's interface as Python's classes. terrace/_libterrace.pyi
// documents each member.
#include "bell.hpp"
#include "connection.hpp"
#include "exported_bytes.hpp"
#include "failure.hpp"
#include "layers.hpp"
#include "leases.hpp"
#include "memory_argument.hpp"
#include "prefix.hpp"
#include "regions.hpp"
#include "sessions.hpp"
#include "spaces.hpp"
#include "stream_memory.hpp"
#include "ticket.hpp"

#include <nanobind/nanobind.h>

NB_MODULE(_libterrace, module) {
  using namespace terrace::python;
  // Leases and views may be alive when the interpreter ends; the daemon takes everything back with the
  // process.
  nanobind::set_leak_warnings(false);
  register_failures();
  bind_exported_bytes(module);
  bind_memory_arguments(module);
  bind_prefix(module);
  bind_spaces(module);
  bind_regions(module);
  bind_layers(module);
  bind_stream_memory(module);
  bind_leases(module);
  bind_tickets(module);
  auto connection = bind_connection(module);
  bind_requests(module, connection);
  bind_sessions(module, connection);
  bind_reports(connection);
  bind_bell(module, connection);
}
