// Permissions of a trust group's clients.
#pragma once

#include "base/error.hpp"

#include <string>

#include <sys/types.h>

namespace terrace {

/// Returns whether the client may change what serves all clients of the group. Only the daemon's own user and
/// root may. Error: `denied`. `why`: what the request would change.
inline result<void> may_govern(uid_t client, uid_t daemon, const char* why) {
  if (client == 0 || client == daemon)
    return {};
  return fail(errc::denied,
              "expected the daemon's own user or root, got user " + std::to_string(client) + ": " + why);
}

/// Returns whether clients may map the memory of the group. Error: `denied`. `instead`: what the client can
/// use.
inline result<void> may_map(const std::string& group, bool isolated, const char* instead) {
  if (!isolated)
    return {};
  return fail(errc::denied, "nothing is mapped in the isolated group " + group + "; use " + instead);
}

/// Returns the error for a user that is not admitted to a socket.
inline error not_admitted(uid_t uid, gid_t gid, const std::string& path) {
  return {errc::denied, "uid " + std::to_string(uid) + ", gid " + std::to_string(gid) + " may not use " +
                            path + "; see uids and gids in its [[listen]]"};
}

} // namespace terrace
