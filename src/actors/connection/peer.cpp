#include "actors/connection/peer.hpp"

#include "protocol/error_frame.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 // Linux 6.5
#endif

namespace terrace {

std::optional<peer> identify_peer(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return std::nullopt;
  peer who;
  who.pid = credentials.pid;
  who.uid = credentials.uid;
  who.gid = credentials.gid;
  int pidfd = -1;
  length = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) != 0)
    pidfd = static_cast<int>(::syscall(SYS_pidfd_open, credentials.pid, 0));
  if (pidfd < 0)
    return std::nullopt; // it has already ended
  who.pidfd = std::make_shared<unique_fd>(pidfd);
  return who;
}

void turn_away(const unique_fd& socket, const error& why) {
  protocol::frame_builder frame;
  protocol::write_error(frame, 0, why);
  (void) !::send(socket.get(), frame.bytes().data(), frame.bytes().size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace terrace
