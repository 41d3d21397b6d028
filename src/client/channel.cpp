#include "client/channel.hpp"

#include "protocol/verify.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

namespace terrace::client::detail {

using protocol::kind;
using namespace std::chrono;

// ---- Unix sockets ----

namespace {

nanoseconds left(const deadline& until) { return std::max<nanoseconds>(*until - steady_clock::now(), 0ns); }

// The maximum time for connect(2) to wait for room in the listener's backlog. For the kernel, zero means no
// limit.
void limit_connect(int socket, microseconds time) {
  timeval limit{time.count() / 1'000'000, time.count() % 1'000'000};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

} // namespace

result<unique_fd> connect_socket(const std::string& path, deadline until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(errc::bad_request, "expected the path of a socket of 1 to " +
                                       std::to_string(sizeof address.sun_path - 1) + " bytes, got \"" + path +
                                       "\"");
  std::memcpy(address.sun_path, path.data(), path.size());
  unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket)
    return fail(errc::internal, "cannot make a socket: " + std::string(std::strerror(errno)));
  if (until)
    limit_connect(socket.get(), std::max<microseconds>(duration_cast<microseconds>(left(until)), 1us));
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    int reason = errno;
    if (reason == EINTR)
      continue;
    if (reason == EISCONN)
      break;
    if (reason == EAGAIN)
      return fail(errc::deadline, "the daemon at " + path + " did not accept the connection in time");
    auto code = reason == EACCES || reason == EPERM ? errc::denied : errc::gone;
    return fail(code, "cannot connect to a daemon at " + path + ": " + std::strerror(reason) +
                          (code == errc::gone ? "; is terraced running?" : ""));
  }
  if (until)
    limit_connect(socket.get(), 0us);
  return socket;
}

void ask_for_buffers(int socket, uint32_t bytes) {
  int size = static_cast<int>(std::min<uint32_t>(bytes, 1U << 30));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

result<short> wait_for(int socket, short events, deadline until, on_signal signals) {
  for (;;) {
    pollfd watched{socket, events, 0};
    timespec limit{};
    if (until) {
      auto time = left(until);
      limit.tv_sec = duration_cast<seconds>(time).count();
      limit.tv_nsec = (time % 1s).count();
    }
    int ready = ::ppoll(&watched, 1, until ? &limit : nullptr, nullptr);
    if (ready >= 0)
      return watched.revents;
    if (errno == EINTR && signals == on_signal::returns)
      return 0;
    if (errno != EINTR)
      return fail(errc::internal,
                  "cannot wait for the daemon's socket: " + std::string(std::strerror(errno)));
  }
}

uint32_t milliseconds_left(deadline until) {
  if (!until)
    return 0;
  auto time = duration_cast<milliseconds>(left(until)).count() + 1;
  return static_cast<uint32_t>(std::min<int64_t>(time, UINT32_MAX));
}

// ---- the channel ----

channel::channel(unique_fd socket, std::chrono::nanoseconds busy_poll)
    : socket_(std::move(socket)), decoder_({.accepts = protocol::direction::answers}),
      polling_(busy_poll.count()) {}

result<void> channel::state() const {
  if (gone_)
    return tl::unexpected<error>(*gone_);
  return {};
}

void channel::lose(std::string reason) {
  if (gone_)
    return;
  gone_ = error{errc::gone, std::move(reason)};
  outbox_.clear();
  // The socket is not closed: epoll forgets a closed descriptor, and an event loop that waits for it would
  // never wake.
  ::shutdown(socket_.get(), SHUT_RDWR);
}

void channel::end(std::string reason) {
  if (!gone_)
    gone_ = error{errc::gone, std::move(reason)};
  outbox_.clear();
  socket_.reset(); // not shut down, because a forked process may still use its copy
}

void channel::set_credits(uint32_t requests, uint64_t bytes, uint64_t frame_bytes_max) {
  credit_requests_ = requests;
  credit_bytes_ = bytes;
  frame_bytes_max_ = std::min<uint64_t>(frame_bytes_max, protocol::frame_bytes_max);
}

// ---- slots ----

uint64_t channel::open_slot(kind request) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  auto& opened = slots_[index];
  opened.state = slot_state::waiting;
  opened.request = request;
  return opened.generation << index_bits | index;
}

channel::slot* channel::find(uint64_t id) {
  uint64_t index = id & ((1U << index_bits) - 1);
  if (index >= slots_.size() || slots_[index].generation != id >> index_bits ||
      slots_[index].state == slot_state::free)
    return nullptr;
  return &slots_[index];
}

void channel::close_slot(uint64_t id) {
  auto index = static_cast<uint32_t>(id & ((1U << index_bits) - 1));
  auto& closed = slots_[index];
  ++closed.generation;
  closed.state = slot_state::free;
  closed.bytes = 0;
  closed.descriptors = {};
  free_slots_.push_back(index);
}

// ---- sending ----

result<size_t> channel::send_some(std::span<const uint8_t> bytes, std::span<const int> descriptors) {
  protocol::outgoing_message message;
  for (;;) {
    auto sent =
        ::sendmsg(socket_.get(), message.prepare(bytes, descriptors), protocol::send_flags | MSG_DONTWAIT);
    if (sent >= 0)
      return static_cast<size_t>(sent);
    if (errno == EAGAIN)
      return 0;
    if (errno == EINTR)
      continue;
    lost_while_sending(errno);
    return tl::unexpected<error>(*gone_);
  }
}

// The daemon may have sent the reason before it closed; it is then still in the receive buffer.
void channel::lost_while_sending(int reason) {
  outbox_.clear();
  do
    take_in();
  while (receive(std::chrono::steady_clock::now()));
  lose("the daemon is gone: " + std::string(std::strerror(reason)));
}

result<void> channel::flush() {
  while (must_flush()) {
    auto sent = send_some(outbox_, {});
    if (!sent)
      return tl::unexpected<error>(sent.error());
    if (*sent == 0)
      return {};
    outbox_.erase(outbox_.begin(), outbox_.begin() + static_cast<ptrdiff_t>(*sent));
  }
  return {};
}

// Waits until something can be sent, receiving answers meanwhile.
result<void> channel::make_room(deadline until) {
  auto ready = wait_for(socket_.get(), POLLIN | POLLOUT, until);
  if (!ready)
    return tl::unexpected<error>(ready.error());
  if (*ready == 0)
    return fail(errc::deadline, "the daemon did not take the request in time");
  if (!(*ready & (POLLIN | POLLHUP | POLLERR)))
    return {};
  auto received = receive(std::chrono::steady_clock::now());
  take_in();
  return received;
}

result<void> channel::wait_for_credits(protocol::kind verb, uint64_t bytes, deadline until) {
  bool gives_back = protocol::gives_back(verb) && bytes <= protocol::giving_back_bytes_max &&
                    in_flight_ < credit_requests_ + protocol::giving_back_requests_max;
  while (!gives_back && in_flight_ > 0 &&
         (in_flight_ >= credit_requests_ || in_flight_bytes_ + bytes > credit_bytes_)) {
    if (take_in() > 0)
      continue;
    if (auto ok = receive(until); !ok)
      return ok;
  }
  return {};
}

result<uint64_t> channel::send(uint64_t id, std::span<const int> descriptors, deadline until) {
  auto bytes = builder_.bytes();
  auto give_up = [&](error why) -> result<uint64_t> {
    close_slot(id);
    return tl::unexpected<error>(std::move(why));
  };
  if (bytes.empty() || bytes.size() > frame_bytes_max_)
    return give_up({errc::bad_request, "expected a request of at most " + std::to_string(frame_bytes_max_) +
                                           " bytes; split it or send digests instead of tokens"});
  if (auto ok = wait_for_credits(protocol::read_header(bytes.data()).kind, bytes.size(), until); !ok)
    return give_up(ok.error());
  while (must_flush()) {
    auto ok = flush();
    if (ok && must_flush())
      ok = make_room(until);
    if (!ok)
      return give_up(ok.error());
  }
  auto rest = bytes;
  while (!rest.empty()) {
    bool begun = rest.size() < bytes.size();
    auto sent = send_some(rest, begun ? std::span<const int>{} : descriptors);
    if (!sent)
      return give_up(sent.error());
    rest = rest.subspan(*sent);
    if (*sent > 0)
      continue;
    inside_frame_ = begun; // nothing else may be sent until the rest is
    auto ok = make_room(until);
    inside_frame_ = false;
    if (ok)
      continue;
    if (ok.error().code != errc::deadline || !begun)
      return give_up(ok.error());
    // Part of a frame was sent. When the connection is used next, the rest is sent first; the request is in
    // flight.
    outbox_.insert(outbox_.begin(), rest.begin(), rest.end());
    break;
  }
  slot* sent = find(id);
  sent->bytes = bytes.size();
  in_flight_bytes_ += bytes.size();
  ++in_flight_;
  if (sent->copies_payloads())
    ++copies_in_flight_;
  return id;
}

void channel::send_unwatched(uint64_t id) {
  auto bytes = posts_.bytes();
  auto* opened = find(id);
  opened->state = slot_state::forgotten;
  opened->bytes = bytes.size();
  in_flight_bytes_ += bytes.size();
  ++in_flight_;
  size_t sent = 0;
  if (outbox_.empty() && !inside_frame_) {
    // A loss is ignored here: this runs in destructors, and the next call reports it.
    protocol::outgoing_message message;
    auto some = ::sendmsg(socket_.get(), message.prepare(bytes), protocol::send_flags | MSG_DONTWAIT);
    sent = some > 0 ? static_cast<size_t>(some) : 0;
  }
  outbox_.insert(outbox_.end(), bytes.begin() + static_cast<ptrdiff_t>(sent), bytes.end());
}

void channel::post_release(const lease_id& lease) {
  post(kind::release, [&](auto& body) {
    return wire::CreateRelease(body, body.CreateVector(lease.bytes.data(), lease.bytes.size()));
  });
}

void channel::post_abort(uint64_t reservation) {
  post(kind::abort, [&](auto& body) { return wire::CreateAbort(body, reservation); });
}

void channel::post_cancel(uint64_t request) {
  post(kind::cancel, [&](auto& body) { return wire::CreateCancel(body, request); });
}

} // namespace terrace::client::detail
