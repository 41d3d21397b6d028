// VALKEY LINK: one connection to a Valkey or Redis server with its socket, part of the remote store's actor, which passes it
// the completions of its ring. A server that says nothing for `silence_max`, while something is asked of it, has
// failed. It has more time to let us in, because nobody waits for that: one that stood still is in use as soon as it goes on.
//
// With TLS, what is received is decrypted into the memory that a reply goes to, and what is sent is encrypted into memory of the link,
// some at a time, so that no turn is long.
//
// A host with a name is resolved for each connection, so that a name may move to another server. Its addresses are tried in the order of
// the answer.
//
// After a failure the memory that the kernel accesses is kept until `idle`.
#include "actors/remote/store_link.hpp"
#include "base/unique_fd.hpp"
#include "remote/endpoint_state.hpp"
#include "remote/tls_stream.hpp"
#include "remote/valkey_connection.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

namespace terrace::actors {

namespace {

auto link_now() { return std::chrono::steady_clock::now(); }

/// The addresses of a host. getaddrinfo blocks, for seconds where no server of names answers, and cannot be ended. So it has a thread of
/// its own, which shares the ownership.
struct name_lookup {
  struct place {
    sockaddr_storage bytes{};
    socklen_t length = 0;
  };

  name_lookup(std::string name, uint16_t its_port)
      : host(std::move(name)), port(its_port), done(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  /// Blocks. Everything but `done` belongs to the thread until that is readable.
  void resolve() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* first = nullptr;
    failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
    for (const addrinfo* each = failure == 0 ? first : nullptr; each != nullptr; each = each->ai_next) {
      place& one = places.emplace_back();
      one.length = each->ai_addrlen;
      std::memcpy(&one.bytes, each->ai_addr, each->ai_addrlen);
    }
    if (failure == 0)
      ::freeaddrinfo(first);
    const uint64_t one = 1;
    (void) !::write(done.get(), &one, sizeof one);
  }

  const std::string host;
  const uint16_t port;
  const unique_fd done; ///< an eventfd
  int failure = 0;      ///< of getaddrinfo
  std::vector<place> places;
};

class valkey_link final : public store_link {
 public:
  explicit valkey_link(callbacks call) : store_link(std::move(call)) {}
  ~valkey_link() override;

  void connect(const remote::store_address& address, const remote::store_credentials& with) override;
  bool ready() const override { return phase_ == phase::ready; }
  bool refused() const override { return refused_; }
  std::chrono::microseconds round_trip() override;
  bool reached() const override { return phase_ == phase::greeting || phase_ == phase::ready; }
  bool secured() const override { return reached() && (!tls_ || tls_->established()); }
  remote::valkey_connection* server() override { return server_.get(); }

  void pump(keep_alive into) override;
  void end() override;
  bool idle() const override { return !resolving_ && !connecting_ && !receiving_ && !sending_; }
  void forget() override;
  void on_io_done(uint64_t tag, int32_t result) override;

 private:
  enum class phase : uint8_t { down, connecting, greeting, ready, ending };
  enum tag : uint64_t { connected, received, sent, tick, resolved };

  struct incoming {
    std::shared_ptr<unique_fd> socket;
    msghdr message{};
    iovec area{};
    keep_alive owner;
    std::shared_ptr<remote::valkey_connection> server; ///< bytes may be received into its buffer
    std::vector<std::byte> encrypted;                  ///< with TLS: where they are received
  };
  struct outgoing {
    std::shared_ptr<unique_fd> socket;
    msghdr message{};
    resp::reply_queue::part part;
    std::vector<std::byte> encrypted; ///< with TLS, instead of the part
    size_t sent = 0;                  ///< of these
    iovec area{};
  };

  void fail(const std::string& why) { call_.failed(why); }
  void receive(keep_alive into);
  result<void> take(size_t bytes);
  result<void> decrypt(size_t bytes);
  std::string explained(const error& why) const;
  const char* hint() const;
  void send();
  bool encrypt();
  void resolve(const remote::store_address& address);
  void on_resolved(int32_t result);
  void connect_to(const sockaddr_storage& bytes, socklen_t length);
  void cannot_reach(int why);
  void on_connected(int32_t result);
  void on_received(int32_t bytes);
  void on_sent(int32_t bytes);
  void on_tick();
  bool waits() const;
  void watch();

  phase phase_ = phase::down;
  bool at_path_ = false, of_replica_ = false;
  remote::store_credentials with_;
  std::string name_;                        ///< that a certificate has to have
  std::unique_ptr<remote::tls_stream> tls_; ///< null: without
  std::shared_ptr<unique_fd> socket_;
  std::shared_ptr<name_lookup>
      lookup_; ///< may be older than the connection, so that a slow one is not begun twice
  std::vector<name_lookup::place> places_; ///< of the host, that are not tried yet; the next one is the last
  runtime::operation_id connect_id_{};     ///< of the lookup, then of the connection
  bool resolving_ = false, connecting_ = false, receiving_ = false, sending_ = false, ticking_ = false;
  bool refused_ = false;
  bool has_served_ = false; ///< an earlier connection, or this one
  bool suspects_ = false;   ///< the silence was over when it was looked at last
  remote::silence silence_;
  std::chrono::microseconds round_trip_{0};
  std::shared_ptr<incoming> in_;
  std::shared_ptr<outgoing> out_;
  std::shared_ptr<remote::valkey_connection> server_;
};

valkey_link::~valkey_link() {
  if (socket_)
    ::shutdown(socket_->get(), SHUT_RDWR);
}

void valkey_link::connect(const remote::store_address& address, const remote::store_credentials& with) {
  assert(phase_ == phase::down);
  phase_ = phase::connecting;
  silence_.begin(connects_within);
  round_trip_ = {};
  at_path_ = address.at_path();
  with_ = with;
  of_replica_ = address.of_replica;
  name_ = address.name;
  if (address.host_name.empty())
    connect_to(address.bytes, address.length);
  else
    resolve(address);
}

void valkey_link::resolve(const remote::store_address& address) {
  if (!lookup_ || lookup_->host != address.host_name || lookup_->port != address.port) {
    lookup_ = std::make_shared<name_lookup>(address.host_name, address.port);
    try {
      std::thread([lookup = lookup_] { lookup->resolve(); }).detach();
    } catch (const std::system_error& none) {
      lookup_.reset();
      return fail(std::string("its name cannot be resolved: no thread for it: ") + none.what());
    }
  }
  resolving_ = true;
  runtime::io_request poll;
  poll.code = runtime::io_code::poll;
  poll.fd = lookup_->done.get();
  poll.events = POLLIN;
  poll.keep_alive = lookup_;
  connect_id_ = call_.submit(std::move(poll), call_.first_tag + resolved);
  watch();
}

void valkey_link::on_resolved(int32_t result) {
  resolving_ = false;
  if (phase_ == phase::ending)
    return; // the next connection waits for the same answer
  if (result < 0)
    return fail(std::string("its name cannot be resolved: ") + std::strerror(-result));
  const auto ended = std::exchange(lookup_, nullptr);
  if (ended->failure != 0)
    return fail("its name " + ended->host + " cannot be resolved: " + ::gai_strerror(ended->failure));
  places_ = std::move(ended->places);
  std::reverse(places_.begin(), places_.end());
  cannot_reach(EADDRNOTAVAIL); // the former address, which there was none of
}

/// Tries the host's next address, if it has one.
void valkey_link::cannot_reach(int why) {
  if (places_.empty())
    return fail(std::string("it cannot be reached: ") + std::strerror(why));
  const auto next = places_.back();
  places_.pop_back();
  connect_to(next.bytes, next.length);
}

void valkey_link::connect_to(const sockaddr_storage& bytes, socklen_t length) {
  socket_ =
      std::make_shared<unique_fd>(::socket(bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(socket_->get(), reinterpret_cast<const sockaddr*>(&bytes), length) != 0 &&
      errno != EINPROGRESS)
    return cannot_reach(errno);
  connecting_ = true;
  runtime::io_request poll;
  poll.code = runtime::io_code::poll;
  poll.fd = socket_->get();
  poll.events = POLLOUT;
  poll.keep_alive = socket_;
  connect_id_ = call_.submit(std::move(poll), call_.first_tag + connected);
  watch();
}

void valkey_link::on_connected(int32_t result) {
  connecting_ = false;
  if (phase_ == phase::ending)
    return;
  int failure = result < 0 ? -result : 0;
  socklen_t length = sizeof failure;
  if (failure == 0)
    ::getsockopt(socket_->get(), SOL_SOCKET, SO_ERROR, &failure, &length);
  if (failure != 0)
    return cannot_reach(failure);
  places_.clear();
  // The ring waits for a socket that blocks.
  ::fcntl(socket_->get(), F_SETFL, ::fcntl(socket_->get(), F_GETFL) & ~O_NONBLOCK);
  const int at_once = 1;
  if (!at_path_)
    ::setsockopt(socket_->get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  phase_ = phase::greeting;
  silence_.begin(greets_within);
  in_ = std::make_shared<incoming>();
  out_ = std::make_shared<outgoing>();
  in_->socket = out_->socket = socket_;
  server_ = in_->server = std::make_shared<remote::valkey_connection>(with_.login, of_replica_);
  if (with_.tls) {
    tls_ = std::make_unique<remote::tls_stream>(with_.tls, name_);
    in_->encrypted.resize(piece_bytes);
  }
  call_.turned();
}

void valkey_link::pump(keep_alive into) {
  if (!server_ || phase_ == phase::ending)
    return;
  send();
  receive(std::move(into));
  watch();
}

void valkey_link::receive(keep_alive into) {
  if (receiving_)
    return;
  receiving_ = true;
  auto area = tls_ ? std::span(in_->encrypted) : server_->receive_area();
  in_->area = {area.data(), std::min<size_t>(area.size(), piece_bytes)};
  in_->message = {};
  in_->message.msg_iov = &in_->area;
  in_->message.msg_iovlen = 1;
  in_->owner = std::move(into);
  runtime::io_request request;
  request.code = runtime::io_code::recvmsg;
  request.fd = socket_->get();
  request.message = &in_->message;
  request.keep_alive = in_;
  call_.submit(std::move(request), call_.first_tag + received);
}

void valkey_link::on_received(int32_t bytes) {
  assert(receiving_);
  receiving_ = false;
  if (phase_ == phase::ending)
    return;
  if (bytes == 0)
    return fail(std::string("it has closed the connection") + hint());
  if (bytes < 0 && bytes != -EINTR && bytes != -EAGAIN)
    return fail(std::string("the connection failed: ") + std::strerror(-bytes) + hint());
  if (bytes > 0) {
    const auto now = link_now();
    silence_.received(static_cast<uint64_t>(bytes), now);
    if (call_.received)
      call_.received(static_cast<uint64_t>(bytes), now);
    auto taken = tls_ ? decrypt(static_cast<size_t>(bytes)) : take(static_cast<size_t>(bytes));
    if (phase_ == phase::ending)
      return;
    if (!taken) {
      refused_ = taken.error().code != errc::busy;
      return fail(explained(taken.error()));
    }
  }
  if (phase_ == phase::greeting && server_->ready()) {
    phase_ = phase::ready;
    has_served_ = true;
    silence_.begin(call_.silence_max);
    call_.ready();
  }
  call_.turned();
}

std::chrono::microseconds valkey_link::round_trip() {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (!socket_ || ::getsockopt(socket_->get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
    return round_trip_;
  const std::chrono::microseconds lately(info.tcpi_rtt);
  if (round_trip_.count() == 0 || (lately < round_trip_ && lately.count() != 0))
    round_trip_ = lately;
  return round_trip_;
}

/// Bytes of the connection have come. Whoever is told of a result may end the link.
result<void> valkey_link::take(size_t bytes) {
  auto taken = server_->received(bytes);
  while (auto finished = server_->next_finished()) {
    silence_.heard(link_now());
    call_.finished(*finished);
    if (phase_ == phase::ending)
      break;
  }
  return taken;
}

result<void> valkey_link::decrypt(size_t bytes) {
  if (auto taken = tls_->received(std::span(in_->encrypted).first(bytes)); !taken)
    return taken;
  while (phase_ != phase::ending) {
    auto count = tls_->read(server_->receive_area());
    if (!count)
      return tl::unexpected(count.error());
    if (*count == 0)
      break;
    if (auto taken = take(*count); !taken)
      return taken;
  }
  return {};
}

/// A server that speaks TLS answers a greeting without by an alert.
std::string valkey_link::explained(const error& why) const {
  constexpr std::byte alert{21};
  const bool is_alert =
      !tls_ && phase_ == phase::greeting && *static_cast<const std::byte*>(in_->area.iov_base) == alert;
  return is_alert ? std::string("the server speaks TLS at this port: write the address with rediss:// in "
                                "front, or cluster+tls:// or "
                                "sentinel+tls://")
                  : why.text;
}

/// Says what an end or a silence may mean before the server has let us in.
const char* valkey_link::hint() const {
  if (phase_ != phase::greeting || at_path_ || has_served_)
    return "";
  return tls_ ? tls_->established() ? "" : remote::no_tls_there : remote::tls_there;
}

/// Fills the memory that is to be sent. False: there is nothing.
bool valkey_link::encrypt() {
  if (out_->encrypted.size() == out_->sent) {
    for (size_t done = 0; tls_->established() && done < piece_bytes && !server_->outgoing().empty();) {
      const auto part = server_->outgoing().begin(piece_bytes);
      size_t taken = 0;
      for (const iovec& area : part.areas) {
        const size_t some = std::min(area.iov_len, piece_bytes - done);
        tls_->write({static_cast<const std::byte*>(area.iov_base), some});
        taken += some;
        done += some;
        if (done == piece_bytes)
          break;
      }
      server_->outgoing().sent(taken);
    }
    out_->encrypted = tls_->take_outgoing();
    out_->sent = 0;
  }
  out_->area = {out_->encrypted.data() + out_->sent, out_->encrypted.size() - out_->sent};
  out_->message = {};
  out_->message.msg_iov = &out_->area;
  out_->message.msg_iovlen = 1;
  return out_->area.iov_len != 0;
}

void valkey_link::send() {
  if (sending_ || (tls_ ? !encrypt() : server_->outgoing().empty()))
    return;
  sending_ = true;
  if (!tls_) {
    out_->part = server_->outgoing().begin(piece_bytes);
    out_->message = {};
    out_->message.msg_iov = out_->part.areas.data();
    out_->message.msg_iovlen = out_->part.areas.size();
  }
  runtime::io_request request;
  request.code = runtime::io_code::sendmsg;
  request.fd = socket_->get();
  request.message = &out_->message;
  request.flags = MSG_NOSIGNAL;
  request.keep_alive = out_;
  call_.submit(std::move(request), call_.first_tag + sent);
}

void valkey_link::on_sent(int32_t bytes) {
  assert(sending_);
  sending_ = false;
  out_->part = {};
  if (phase_ == phase::ending)
    return;
  if (bytes <= 0 && bytes != -EINTR && bytes != -EAGAIN)
    return fail(std::string("the connection failed: ") + std::strerror(-bytes));
  if (tls_)
    out_->sent += static_cast<size_t>(std::max(bytes, 0));
  else
    server_->outgoing().sent(static_cast<uint64_t>(std::max(bytes, 0)));
  // The server may not have seen what the kernel has taken to the end.
  if (bytes > 0 && (!server_->outgoing().empty() || (tls_ && out_->sent < out_->encrypted.size())))
    silence_.heard(link_now());
  call_.turned();
}

void valkey_link::end() {
  if (phase_ == phase::down)
    return;
  phase_ = phase::ending;
  if (resolving_ || connecting_)
    call_.cancel(connect_id_);
  if (socket_ && *socket_)
    ::shutdown(socket_->get(), SHUT_RDWR);
}

void valkey_link::forget() {
  assert(idle());
  phase_ = phase::down;
  places_.clear();
  refused_ = suspects_ = silent_ = false;
  server_.reset();
  tls_.reset();
  in_.reset();
  out_.reset();
  socket_.reset();
}

// ---- silence ----

bool valkey_link::waits() const {
  return phase_ == phase::connecting || phase_ == phase::greeting ||
         (server_ && (sending_ || server_->waits()));
}

/// Looks again when the silence may be over; at least as often as `silence_max`, because the limit changes with the phase.
void valkey_link::watch() {
  const auto now = link_now();
  silence_.awaits(waits(), now);
  const auto ends = silence_.ends_at();
  if (ticking_ || !ends || phase_ == phase::ending)
    return;
  ticking_ = true;
  runtime::io_request wait;
  wait.code = runtime::io_code::timeout;
  wait.after =
      std::clamp<std::chrono::nanoseconds>(*ends - now, std::chrono::milliseconds(1), call_.silence_max);
  call_.submit(std::move(wait), call_.first_tag + tick);
}

void valkey_link::on_tick() {
  ticking_ = false;
  if (phase_ == phase::down || phase_ == phase::ending)
    return;
  const auto ends = silence_.ends_at();
  const bool silent = ends && *ends <= link_now();
  // If this thread stood still itself, the answer may be here. So it looks twice, and takes what is here in between.
  silent_ = std::exchange(suspects_, silent) && silent;
  if (silent_)
    return fail(resolving_ ? "its name is not resolved in time: ask with `getent hosts " + lookup_->host + "`"
                           : std::string("it does not answer") + hint());
  watch();
}

void valkey_link::on_io_done(uint64_t done, int32_t result) {
  switch (done - call_.first_tag) {
    case resolved: return on_resolved(result);
    case connected: return on_connected(result);
    case received: return on_received(result);
    case sent: return on_sent(result);
    default: return on_tick();
  }
}

} // namespace

std::unique_ptr<store_link> make_valkey_link(store_link::callbacks call) {
  return std::make_unique<valkey_link>(std::move(call));
}

std::unique_ptr<store_link> make_link(const remote::store_address& address, store_link::callbacks call) {
  if (address.at == remote::store_address::kind::plugin)
    return make_plugin_link(std::move(call));
#if TERRACE_WITH_CURL
  if (address.at == remote::store_address::kind::bucket)
    return make_s3_link(std::move(call));
#endif
  assert(address.at != remote::store_address::kind::bucket); // there are no such addresses without libcurl
  return make_valkey_link(std::move(call));
}

} // namespace terrace::actors
