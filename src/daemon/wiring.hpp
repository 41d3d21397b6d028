// Creates the supervisor's arguments from the settings.
#pragma once

#include "actors/supervision/supervisor_actor.hpp"
#include "daemon/settings.hpp"
#include "runtime/kernel_probe.hpp"

namespace terrace {

/// Opens the sockets and the exposition and registers all probes. The caller sets the callbacks. Errors:
/// those of the sockets and of the metrics address.
result<actors::supervisor_arguments> wire_up(const settings& with, const environment& env,
                                             const runtime::kernel_report& kernel);

} // namespace terrace
