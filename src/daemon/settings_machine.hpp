// Checks of valid settings against this machine. `settings::validate()` is pure.
#pragma once

#include "base/error.hpp"
#include "daemon/settings.hpp"
#include "remote/realm.hpp"
#include "remote/tls_stream.hpp"

#include <string>
#include <vector>

namespace terrace {

/// Two names of one directory: other spellings, links, or bind mounts. Blocks; for any settings that are valid.
std::vector<option_problem> repeated_directories(const settings& with);

/// Directories that do not exist, or are something else. The daemon does not make them: if a device is not
/// mounted, the tier would fill the file system below. The default directory (`default_path`,
/// `environment::state_path`) is not a problem, because `make_default_directory` makes it.
std::vector<option_problem> missing_directories(const settings& with, const std::string& default_path);

/// Makes the directory of the disk tier if it is the default one, and the folder of a socket if the socket has its default
/// path. Errors show when the files are opened.
void make_default_directories(const settings& with, const std::string& default_path,
                              const std::string& default_socket);

/// Why the daemon cannot start here, apart from the disk tier, without which it starts: a socket's folder that does not
/// exist, two names of one socket, a NUMA node that does not exist, a password or a certificate that cannot be read.
std::vector<option_problem> machine_problems(const settings& with, const std::string& default_socket);

/// Reads the first line of a file with a password or token. `option` names it. Error: it cannot be read, has none, or others
/// may read it.
result<std::string> read_password(const std::string& file, const std::string& option);
/// The same of a `[[remote]]`, and the user in the second line, if there is one.
result<remote::store_login> read_login(const std::string& file, const std::string& option);
/// Reads a login; a bucket needs a user as well.
result<remote::store_login> login_of(const remote_options& remote, const std::string& file,
                                     const std::string& option);
/// Error: what is wrong with a file that `metrics.tls_file` names.
result<void> check_metrics_tls(const std::string& file);
/// The certificates for a `[[remote]]`; null: its address asks for no TLS.
result<remote::tls_keys_ptr> read_tls(const remote_options& remote);

/// All that a connection to the store needs: reads password_file and the files for TLS. Errors: which of them is wrong, and how.
result<remote::store_credentials> read_credentials(const remote_options& remote);

/// Reads the key of a realm. Error: it cannot be read, is too short or too long, or others may read it.
result<remote::realm> read_realm(const remote_options& remote);

} // namespace terrace
