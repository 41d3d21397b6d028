// Runs the daemon from the first socket to the last: starts the actors, and waits for signals.
#pragma once

#include "base/error.hpp"
#include "daemon/settings.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace terrace {

enum exit_code { clean = 0, failed = 1, wrong_usage = 2 };

/// Reads the settings again, for SIGHUP. It must not wait for a device, because the calling thread answers
/// the service manager's watchdog.
using settings_reader = std::function<result<settings>()>;

/// Returns after SIGTERM, SIGINT or a request to shut down, when everything has ended. `failed`: the daemon
/// could not start or did not end in order; the log says why. Precondition: `with` is valid. Call it once, on
/// the main thread, before the process has other threads.
exit_code serve(settings with, const settings_reader& read_again, const environment& env);

} // namespace terrace
