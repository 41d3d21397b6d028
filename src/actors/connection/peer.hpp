// The process at the other end of a socket.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <memory>
#include <optional>

#include <sys/types.h>

namespace terrace {

struct peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::shared_ptr<unique_fd> pidfd; ///< readable when the process has ended
};

/// The pidfd comes from the socket if the kernel supports it (Linux 6.5), so that it refers to the process that
/// connected even if its number has been reused. Nullopt: it has already ended.
std::optional<peer> identify_peer(int socket);

/// Sends the error, as far as the client's socket accepts it. The caller closes the socket.
void turn_away(const unique_fd& socket, const error& why);

} // namespace terrace
