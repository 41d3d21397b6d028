// `terraced --check` and `terrace doctor` compare valid settings with this machine at this moment.
#pragma once

#include "daemon/settings.hpp"

#include <string>
#include <vector>

namespace terrace {

struct machine_findings {
  std::vector<option_problem> failures; ///< the daemon does not start
  std::vector<option_problem> warnings; ///< it starts and lacks something, or it runs already
};

/// Everything of `machine_problems` and `missing_directories`, and what is in the way of a socket or a port. A socket at which a
/// terraced listens is a warning: the file of a running daemon may be checked before a reload. The ports of that daemon are
/// none. A port that another process has is a failure for [[resp]], and a warning for the metrics, without which the daemon
/// serves. Connects to the sockets of the settings, binds their ports, and blocks. Call it as the daemon's user.
machine_findings check_machine(const settings& with, const std::string& default_directory,
                               const std::string& default_socket);

/// Removes what is found about these sections and options, such as "listen" and "host.bytes": their values are not those that somebody
/// wants. The rest is true of a file with mistakes as well.
void leave_out(machine_findings& found, const std::vector<std::string>& wrong);

/// The findings and what the settings need of the machine, a line each, with tabs between: "failure", "warning", TEXT, FIX;
/// "socket", PATH; "disk", FOLDER; "makes", FOLDER (the daemon makes it); "host_bytes", N; "disk_bytes", N; "metrics", ADDRESS. The
/// program adds "remote", ADDRESS, STEP, FAILURE, the latter two empty if the store can be used.
std::string needs_report(const settings& with, const machine_findings& findings,
                         const std::string& default_directory, const std::string& default_socket);
/// The lines of the findings alone.
std::string findings_report(const machine_findings& findings);

} // namespace terrace
