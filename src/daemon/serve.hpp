// Runs the daemon from the first socket to the last: starts the actors, and waits for signals.
#pragma once

#include "base/error.hpp"
#include "daemon/settings.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::runtime {
struct kernel_report;
}
namespace terrace::actors {
struct supervisor_arguments;
}
namespace caf {
class actor;
}

namespace terrace {

enum exit_code { clean = 0, failed = 1, wrong_usage = 2 };

/// Reads the settings again, for SIGHUP. It must not wait for a device, because the calling thread answers
/// the service manager's watchdog.
using settings_reader = std::function<result<settings>()>;

/// Returns after SIGTERM, SIGINT or a request to shut down, when everything has ended. `failed`: the daemon
/// could not start or did not end in order; the log says why. Precondition: `with` is valid. Call it once, on
/// the main thread, before the process has other threads.
exit_code serve(settings with, const settings_reader& read_again, const environment& env);

// Creates the supervisor's arguments from the settings.

/// Opens the sockets and the exposition and registers all probes. The caller sets the callbacks. Errors:
/// those of the sockets and of the metrics address.
result<actors::supervisor_arguments> wire_up(const settings& with, const environment& env,
                                             const runtime::kernel_report& kernel);

/// Says what the disks would forget if the daemon started with these settings, because disk.bytes is smaller than
/// before. Only reads, also while a daemon uses the disks. Blocks.
std::vector<std::string> describe_shrinking(const settings& with);

/// The store of a [[remote]], asked as `terrace remote probe` asks it.
struct remote_trial {
  std::string address;
  std::string step{};    ///< that failed
  std::string failure{}; ///< what is wrong and what to do; empty: the store can be used
};
/// Asks the store of each [[remote]], without a daemon that runs: writes a value, reads it and removes it. Those whose files cannot be
/// read are left out (`machine_problems`), and all where the kernel lacks what rings need. Precondition: `with` is valid. Blocks for
/// seconds if stores do not answer.
std::vector<remote_trial> try_remotes(const settings& with);

/// Tells the supervisor of the changes of a reload: policies, quotas and memory of the groups.
void send_changes(const settings& merged, const settings& before, const caf::actor& supervisor);

// `terraced --gpu DEVICE`: the process that makes all CUDA calls for one GPU. The daemon starts it, and it
// ends with the daemon.

/// Serves the socket that the daemon left at descriptor 3. Returns only if it cannot begin.
int run_gpu_process(const std::string& device);

/// Returns what `terraced --version` says about the machine's GPUs: a line for the driver and one for each
/// device.
std::string gpu_report();

} // namespace terrace
