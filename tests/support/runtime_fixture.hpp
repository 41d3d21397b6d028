// The real scheduler on real rings, for tests that need threads.
#pragma once

#include "runtime/io_port.hpp"
#include "runtime/workers.hpp"

#include <caf/all.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>

namespace terrace::test {

/// An actor system on `workers` rings. Destroying it waits for its actors.
class runtime_system {
 public:
  explicit runtime_system(size_t workers, uint32_t ring_entries = 64)
      : runtime_system(runtime::runtime_options{.workers = workers, .ring_entries = ring_entries}) {}

  explicit runtime_system(const runtime::runtime_options& options) {
    runtime::workers::install(config_, options);
    system_ = std::make_unique<caf::actor_system>(config_);
  }

  caf::actor_system& operator*() { return *system_; }
  caf::actor_system* operator->() { return system_.get(); }
  runtime::workers pool() { return runtime::workers{*system_}; }
  void reset() { system_.reset(); }

 private:
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
};

/// Two connected Unix sockets, closed at the end.
struct socket_pair {
  explicit socket_pair(int type = SOCK_STREAM) { (void) !::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds); }
  ~socket_pair() {
    close_one(0);
    close_one(1);
  }
  socket_pair(const socket_pair&) = delete;
  socket_pair& operator=(const socket_pair&) = delete;
  void close_one(int i) {
    if (fds[i] >= 0)
      ::close(fds[i]);
    fds[i] = -1;
  }
  int fds[2] = {-1, -1};
};

/// A buffer with the msghdr that refers to it, owned together, because recvmsg and sendmsg need both to
/// outlive their actor.
struct message_buffer {
  explicit message_buffer(size_t size) : bytes(size, '\0') {
    vector = {bytes.data(), bytes.size()};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
  }
  static std::shared_ptr<message_buffer> of(std::string text) {
    auto out = std::make_shared<message_buffer>(text.size());
    out->bytes = std::move(text);
    out->vector = {out->bytes.data(), out->bytes.size()};
    return out;
  }
  std::string bytes;
  iovec vector{};
  msghdr header{};
};

inline runtime::io_request receive_into(int fd, const std::shared_ptr<message_buffer>& buffer) {
  return {.code = runtime::io_code::recvmsg, .fd = fd, .message = &buffer->header, .keep_alive = buffer};
}

inline runtime::io_request send_from(int fd, const std::shared_ptr<message_buffer>& buffer) {
  return {.code = runtime::io_code::sendmsg, .fd = fd, .message = &buffer->header, .keep_alive = buffer};
}

/// A value that an actor sets and the test waits for.
template <class T>
using outcome = std::shared_ptr<std::promise<T>>;

template <class T>
outcome<T> make_outcome() {
  return std::make_shared<std::promise<T>>();
}

} // namespace terrace::test
