#include "simulated_sockets.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace terrace::simulation {

using runtime::io_code;
using runtime::io_request;

namespace {

thread_local uint64_t touches_of_thread = 1;

short events_of(const io_request& request) {
  switch (request.code) {
    case io_code::poll: return static_cast<short>(request.events);
    case io_code::sendmsg:
    case io_code::send:
    case io_code::write: return POLLOUT;
    default: return POLLIN;
  }
}

/// Nothing: it has to wait.
std::optional<int32_t> outcome(ssize_t result) {
  if (result >= 0)
    return static_cast<int32_t>(result);
  return errno == EAGAIN || errno == EINTR ? std::nullopt : std::optional(-errno);
}

} // namespace

socket_habits socket_habits::draw(seeded_random& random) {
  socket_habits habits;
  habits.most = std::chrono::nanoseconds(random.swarm(2'000'000));
  habits.cut = random.swarm(500'000);
  return habits;
}

simulated_sockets::simulated_sockets(scheduler& events, uint64_t seed, socket_habits habits, completes done)
    : events_(events), random_(seed), habits_(habits), done_(std::move(done)) {}

simulated_sockets::~simulated_sockets() {
  for (const waiting& one : waiting_)
    events_.cancel(one.next);
}

void simulated_sockets::touch() { ++touches_of_thread; }
uint64_t simulated_sockets::touches() { return touches_of_thread; }

void simulated_sockets::start(runtime::operation& op) {
  auto which = waiting_.insert(waiting_.end(), {&op, ++started_, 0});
  events_.note({5, started_, static_cast<uint64_t>(op.request.code), op.request.length});
  touch();
  if (op.request.code != io_code::send)
    return;
  // It is done at once or not at all, as by the ring.
  auto result = perform(op.request);
  complete(which, result.value_or(-EAGAIN));
}

bool simulated_sockets::cancel(runtime::operation& op) {
  auto which =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const waiting& one) { return one.op == &op; });
  if (which == waiting_.end())
    return false;
  events_.cancel(which->next);
  complete(which, -ECANCELED);
  return true;
}

void simulated_sockets::look() {
  if (std::exchange(seen_, touches()) == touches())
    return; // a system call for nothing
  std::vector<pollfd> watched;
  std::vector<all::iterator> of;
  for (auto each = waiting_.begin(); each != waiting_.end(); ++each)
    if (each->next == 0) {
      watched.push_back({each->op->request.fd, events_of(each->op->request), 0});
      of.push_back(each);
    }
  if (watched.empty() || ::poll(watched.data(), watched.size(), 0) <= 0)
    return;
  for (size_t i = 0; i < watched.size(); ++i)
    if (watched[i].revents != 0) {
      std::chrono::nanoseconds delay(random_.between(0, static_cast<uint64_t>(habits_.most.count())));
      of[i]->next = events_.after(delay, [this, which = of[i]] { attempt(which); });
    }
}

void simulated_sockets::attempt(all::iterator which) {
  which->next = 0;
  touch();
  if (auto result = perform(which->op->request))
    complete(which, *result);
}

void simulated_sockets::complete(all::iterator which, int32_t result) {
  // The number of an accepted descriptor depends on what else the process has open.
  bool number = which->op->request.code == io_code::accept && result >= 0;
  events_.note({6, which->number, number ? 0 : static_cast<uint64_t>(static_cast<int64_t>(result))});
  runtime::operation& op = *which->op;
  waiting_.erase(which);
  done_(op, result);
}

/// How many bytes move: at least one, if there is any. Packets move as a whole.
size_t simulated_sockets::part_of(int socket, size_t bytes) {
  if (bytes <= 1 || !random_.chance(habits_.cut))
    return bytes;
  int type = SOCK_STREAM;
  socklen_t length = sizeof type;
  ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length);
  size_t part = random_.between(1, bytes);
  return type == SOCK_SEQPACKET ? bytes : part;
}

std::optional<int32_t> simulated_sockets::perform(const io_request& request) {
  switch (request.code) {
    case io_code::poll: {
      pollfd one{request.fd, static_cast<short>(request.events), 0};
      ::poll(&one, 1, 0);
      return one.revents != 0 ? std::optional<int32_t>(one.revents) : std::nullopt;
    }
    case io_code::accept: {
      pollfd one{request.fd, POLLIN, 0};
      if (::poll(&one, 1, 0) == 0)
        return std::nullopt;
      return outcome(::accept4(request.fd, nullptr, nullptr, request.flags));
    }
    case io_code::read: return outcome(::read(request.fd, request.data, request.length));
    case io_code::write: return outcome(::write(request.fd, request.data, request.length));
    case io_code::send:
      return outcome(::send(request.fd, request.data, part_of(request.fd, request.length),
                            request.flags | MSG_DONTWAIT | MSG_NOSIGNAL));
    default: return transfer(request);
  }
}

std::optional<int32_t> simulated_sockets::transfer(const io_request& request) {
  if (request.code != io_code::recvmsg && request.code != io_code::sendmsg)
    return -EINVAL;
  msghdr message = *request.message;
  std::vector<iovec> areas(message.msg_iov, message.msg_iov + message.msg_iovlen);
  size_t bytes = 0;
  for (const iovec& area : areas)
    bytes += area.iov_len;
  size_t left = part_of(request.fd, bytes);
  for (iovec& area : areas) {
    area.iov_len = std::min(area.iov_len, left);
    left -= area.iov_len;
  }
  message.msg_iov = areas.data();
  // Waiting for all of it would stop the only thread: a part of it is what a signal would leave.
  int flags = (request.flags & ~MSG_WAITALL) | MSG_DONTWAIT;
  if (request.code == io_code::sendmsg)
    return outcome(::sendmsg(request.fd, &message, flags | MSG_NOSIGNAL));
  auto result = outcome(::recvmsg(request.fd, &message, flags));
  if (result) {
    request.message->msg_controllen = message.msg_controllen;
    request.message->msg_namelen = message.msg_namelen;
    request.message->msg_flags = message.msg_flags;
  }
  return result;
}

} // namespace terrace::simulation
