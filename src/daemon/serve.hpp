// The daemon from the first socket to the last: starts the actors, and waits for signals.
#pragma once

#include "base/error.hpp"
#include "daemon/settings.hpp"

#include <functional>

namespace terrace {

enum exit_code { clean = 0, failed = 1, wrong_usage = 2 };

/// Reads the settings again, for SIGHUP. May not wait for a device: the thread that calls it answers the service manager's watchdog.
using settings_reader = std::function<result<settings>()>;

/// Returns after SIGTERM, SIGINT or a request to shut down, when all has ended. `failed`: it could not start, or did not end in
/// order; the log says why. `with` is valid. Call once, on the main thread, before the process has others.
exit_code serve(settings with, const settings_reader& read_again, const environment& env);

} // namespace terrace
