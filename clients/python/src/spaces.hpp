// Converts spaces from Python's description (terrace/spaces.py), and holds open ones.
#pragma once

#include "shared_connection.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

namespace terrace::python {

/// Python's terrace.Space.
struct space_handle {
  std::shared_ptr<shared_connection> in;
  client::space space;
  std::vector<client::open_pool> pools;
};

/// Reads the attributes of a terrace.SpaceSpec.
client::space_spec spec_of(nb::handle described);

/// Refuses the space of another connection.
const client::space& space_in(const std::shared_ptr<shared_connection>& in, const space_handle& given);

void bind_spaces(nb::module_& in);

} // namespace terrace::python
