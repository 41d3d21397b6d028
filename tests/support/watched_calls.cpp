#include "tests/support/watched_calls.hpp"

#include "tests/support/programs.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace terrace::test {

namespace {

constexpr uint32_t second_argument = offsetof(seccomp_data, args) + sizeof(uint64_t);

/// Reports every close, and every munmap of at least `large_bytes`.
std::array<sock_filter, 9> filter() {
  constexpr uint32_t ask = SECCOMP_RET_USER_NOTIF, allow = SECCOMP_RET_ALLOW;
  return {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, second_argument + 4),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 0, 2, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, second_argument),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, static_cast<uint32_t>(watched_calls::large_bytes), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, ask),
      BPF_STMT(BPF_RET | BPF_K, allow),
  }};
}

struct descriptor_message {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};

  descriptor_message() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
};

void send_descriptor(int socket, int fd) {
  descriptor_message message;
  cmsghdr* first = CMSG_FIRSTHDR(&message.header);
  first->cmsg_level = SOL_SOCKET;
  first->cmsg_type = SCM_RIGHTS;
  first->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(first), &fd, sizeof fd);
  (void) !::sendmsg(socket, &message.header, MSG_NOSIGNAL);
}

unique_fd receive_descriptor(int socket) {
  descriptor_message message;
  int fd = -1;
  if (::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) == 1)
    if (cmsghdr* first = CMSG_FIRSTHDR(&message.header))
      std::memcpy(&fd, CMSG_DATA(first), sizeof fd);
  return unique_fd(fd);
}

std::string name_of(uint32_t thread) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(thread) + "/comm") >> std::ws, name);
  return name;
}

/// Returns whether the munmap concerns a mere reservation, with nothing mapped, so that it takes no time.
bool only_reserved(const seccomp_notif& asked) {
  std::ifstream maps("/proc/" + std::to_string(asked.pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream parts(line);
    uint64_t begin = 0, end = 0;
    char dash = 0;
    std::string access;
    parts >> std::hex >> begin >> dash >> end >> access;
    if (begin <= asked.data.args[0] && asked.data.args[0] < end)
      return access == "---p";
  }
  return false;
}

std::string describe(const seccomp_notif& asked) {
  if (asked.data.nr == SYS_munmap)
    return "unmap " + std::to_string(asked.data.args[1]);
  std::string link =
      "/proc/" + std::to_string(asked.pid) + "/fd/" + std::to_string(static_cast<int>(asked.data.args[0]));
  std::array<char, 256> path{};
  (void) !::readlink(link.c_str(), path.data(), path.size() - 1);
  return std::string("close ") + path.data();
}

} // namespace

watched_calls::watched_calls() : stop_(::eventfd(0, EFD_CLOEXEC)) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    throw std::runtime_error("socketpair failed");
  here_.reset(pair[0]);
  there_.reset(pair[1]);
  thread_ = std::thread([this] { serve(); });
}

watched_calls::~watched_calls() {
  uint64_t one = 1;
  (void) !::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void watched_calls::install() {
  auto program = filter();
  sock_fprog code{program.size(), program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  auto listener = static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &code));
  if (listener < 0)
    ::_exit(98);
  send_descriptor(there_.get(), listener); // exec closes the listener itself
}

void watched_calls::serve() {
  std::vector<unique_fd> listeners;
  for (;;) {
    std::vector<pollfd> watched{{stop_.get(), POLLIN, 0}, {here_.get(), POLLIN, 0}};
    for (const unique_fd& each : listeners)
      watched.push_back({each.get(), POLLIN, 0});
    ::poll(watched.data(), watched.size(), -1);
    if (watched[0].revents != 0)
      return; // the kernel answers pending calls with ENOSYS
    for (size_t i = listeners.size(); i-- > 0;) {
      if ((watched[i + 2].revents & POLLIN) != 0)
        answer(listeners[i].get());
      else if (watched[i + 2].revents != 0) // the program has ended
        listeners.erase(listeners.begin() + static_cast<ptrdiff_t>(i));
    }
    if ((watched[1].revents & POLLIN) != 0)
      listeners.push_back(receive_descriptor(here_.get()));
  }
}

void watched_calls::answer(int listener) {
  seccomp_notif asked{};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
    return; // its thread was interrupted
  if (asked.data.nr == SYS_munmap && only_reserved(asked)) {
    go_on(listener, asked.id);
    return;
  }
  call made{name_of(asked.pid), describe(asked)};
  std::unique_lock guard(lock_);
  bool known = asked.data.nr == SYS_munmap || made.what.find("/memfd:") != std::string::npos;
  if (known)
    seen_.push_back(made);
  bool stands = holding_ && !held_ && asked.data.nr == SYS_munmap;
  if (stands) {
    held_ = made;
    held_by_ = listener;
    held_id_ = asked.id;
  }
  guard.unlock();
  changed_.notify_all();
  if (!stands)
    go_on(listener, asked.id);
}

void watched_calls::go_on(int listener, uint64_t id) {
  seccomp_notif_resp answer{};
  answer.id = id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  (void) ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void watched_calls::hold() {
  std::lock_guard guard(lock_);
  holding_ = true;
}

std::optional<watched_calls::call> watched_calls::await_held() {
  std::unique_lock guard(lock_);
  changed_.wait_for(guard, std::chrono::milliseconds(patience_ms), [this] { return held_.has_value(); });
  return held_;
}

void watched_calls::let_go() {
  std::lock_guard guard(lock_);
  if (held_)
    go_on(held_by_, held_id_);
  held_.reset();
  holding_ = false;
}

bool watched_calls::await_seen(const std::string& thread, const std::string& what) {
  std::unique_lock guard(lock_);
  return changed_.wait_for(guard, std::chrono::milliseconds(patience_ms), [&] {
    return std::any_of(seen_.begin(), seen_.end(), [&](const call& each) {
      return each.thread == thread && each.what.find(what) != std::string::npos;
    });
  });
}

std::vector<watched_calls::call> watched_calls::seen() {
  std::lock_guard guard(lock_);
  return seen_;
}

} // namespace terrace::test
