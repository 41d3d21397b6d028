#include "peer.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace terrace {

namespace {

constexpr int peer_descriptor = 3;

std::map<std::string, std::function<std::string(peer_socket&)>>& roles() {
  static std::map<std::string, std::function<std::string(peer_socket&)>> all;
  return all;
}

} // namespace

bool peer_socket::send(std::span<const std::byte> bytes, int descriptor) const {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(fd_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

std::string peer_socket::receive(unique_fd* descriptor) const {
  char bytes[256];
  iovec part{bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto count = recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
  if (auto* header = CMSG_FIRSTHDR(&message); count > 0 && header && descriptor) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    descriptor->reset(received);
  }
  return count > 0 ? std::string(bytes, static_cast<size_t>(count)) : "";
}

peer_process::peer_process(const char* role) : socket_(unique_fd()) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    std::abort();
  socket_ = peer_socket(unique_fd(ends[0]));
  unique_fd other(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, other.get(), peer_descriptor);
  std::string program = "/proc/self/exe", option = "--peer", name = role;
  char* arguments[] = {program.data(), option.data(), name.data(), nullptr};
  if (posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, environ) != 0)
    process_ = -1;
  posix_spawn_file_actions_destroy(&actions);
}

peer_process::~peer_process() {
  socket_.close();
  wait();
}

int peer_process::wait() {
  if (process_ < 0)
    return -1;
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void peer_process::kill() {
  if (process_ >= 0)
    ::kill(process_, SIGKILL);
}

peer_role::peer_role(const char* name, std::function<std::string(peer_socket&)> run) {
  roles()[name] = std::move(run);
}

int run_peer(const char* role) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  peer_socket socket{unique_fd(peer_descriptor)};
  auto it = roles().find(role);
  auto wrong = it == roles().end() ? "no such role" : it->second(socket);
  if (!wrong.empty())
    std::fprintf(stderr, "peer %s: %s\n", role, wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

} // namespace terrace
