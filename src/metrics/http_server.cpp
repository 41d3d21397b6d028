#include "metrics/http_server.hpp"

#include "base/printable.hpp"
#include "base/unique_fd.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sstream>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <utility>
#include <vector>

namespace terrace::metrics {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto peer_time = 10s;
constexpr size_t head_bytes_max = 16 << 10;
constexpr size_t dropped_bytes =
    64 << 10; ///< of what follows a request, at a time: others have their turns as well
constexpr auto accept_pause = 100ms; ///< while there are no descriptors for connections

/// The bytes of base64; empty if they are none.
std::string decoded(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  int count =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (count < 0)
    return {};
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(static_cast<size_t>(count) - padding);
  return bytes;
}

/// Takes as long for a wrong token as for a right one of the same length.
bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool has_token(std::string_view sent, const std::string& token) {
  constexpr std::string_view bearer = "Bearer ", basic = "Basic ";
  if (sent.starts_with(bearer))
    return same(sent.substr(bearer.size()), token);
  if (!sent.starts_with(basic))
    return false;
  std::string pair = decoded(sent.substr(basic.size()));
  size_t colon = pair.find(':');
  return colon != std::string::npos && same(std::string_view(pair).substr(colon + 1), token);
}

// ---- requests and answers as text ----

struct http_request {
  std::string_view method, path;
  std::string_view authorization;
};

bool same_letters(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// Of a head with its end. Nothing if it is no request of HTTP.
std::optional<http_request> parse_head(std::string_view head) {
  size_t end = head.find("\r\n");
  std::string_view line = head.substr(0, end);
  size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || last == first || !line.substr(last + 1).starts_with("HTTP/1."))
    return std::nullopt;
  http_request request{line.substr(0, first), line.substr(first + 1, last - first - 1), {}};
  request.path = request.path.substr(0, request.path.find('?'));
  constexpr std::string_view authorization = "authorization";
  for (head.remove_prefix(end + 2); !head.starts_with("\r\n"); head.remove_prefix(end + 2)) {
    end = head.find("\r\n");
    std::string_view field = head.substr(0, end);
    size_t colon = field.find(':');
    if (colon == std::string_view::npos || !same_letters(field.substr(0, colon), authorization))
      continue;
    field.remove_prefix(colon + 1);
    field.remove_prefix(std::min(field.find_first_not_of(" \t"), field.size()));
    request.authorization = field.substr(0, field.find_last_not_of(" \t") + 1);
  }
  return request;
}

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Answer";
  }
}

std::string text_of(const http_answer& answer, bool body = true, const char* more = "") {
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " " + reason_of(answer.status) +
                     "\r\nContent-Type: " + answer.type +
                     "\r\nContent-Length: " + std::to_string(answer.body.size()) +
                     "\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                     "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src "
                     "'unsafe-inline'; connect-src 'self'; img-src data:\r\n" +
                     more + "\r\n";
  return body ? text + answer.body : text;
}

http_answer plain_text(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", std::move(text) + "\n"};
}

// ---- TLS ----

using tls_context = std::shared_ptr<SSL_CTX>;

result<tls_context> read_tls_file(const std::string& file) {
  ERR_clear_error();
  tls_context made(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  auto unusable = [&](const char* expected) {
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    std::string said = reason != nullptr ? printable(reason) : "no reason is given";
    ERR_clear_error();
    return fail(errc::bad_request, file + ": " + expected + " was expected (OpenSSL says: " + said + ")");
  };
  // OpenSSL would ask the terminal for a password, and wait.
  if (made)
    SSL_CTX_set_default_passwd_cb(made.get(), [](char*, int, int, void*) { return -1; });
  struct stat status {};
  if (!made || ::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || // a fifo would be waited for
      SSL_CTX_use_certificate_chain_file(made.get(), file.c_str()) != 1)
    return unusable("a file with a certificate in PEM");
  if (SSL_CTX_use_PrivateKey_file(made.get(), file.c_str(), SSL_FILETYPE_PEM) != 1)
    return unusable("the private key of its certificate in PEM, without a password, in the same file");
  SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF); // clients keep their sessions in tickets
  ERR_clear_error();
  return made;
}

/// The certificate of a server, as it is in its file now.
class certificate {
 public:
  certificate() = default;
  certificate(std::string file, tls_context first)
      : file_(std::move(file)), context_(std::move(first)), read_(state()) {}

  SSL_CTX* get() const { return context_.get(); }

  /// Reads the file again if it has changed. A file that cannot be used changes nothing.
  result<void> follow() {
    if (!context_)
      return {};
    auto now = state();
    if (now == read_)
      return {};
    read_ = now;
    auto next = read_tls_file(file_);
    if (!next)
      return tl::unexpected(next.error());
    context_ = std::move(*next);
    return {};
  }

 private:
  using file_state = std::array<int64_t, 4>;
  file_state state() const {
    struct stat status {};
    if (::stat(file_.c_str(), &status) != 0)
      return {};
    return {static_cast<int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec};
  }

  std::string file_;
  tls_context context_;
  file_state read_{};
};

// ---- connections ----

/// One connection: a request, its answer, and the rest until the client has closed as well, which gets no answer that way.
class http_peer {
 public:
  http_peer(unique_fd socket, SSL_CTX* tls, clock::time_point end)
      : socket_(std::move(socket)), tls_(tls == nullptr ? nullptr : SSL_new(tls), SSL_free), end_(end) {
    if (tls == nullptr)
      return;
    if (!tls_)
      std::abort(); // no memory; without TLS nothing may be said
    SSL_set_fd(tls_.get(), socket_.get());
    SSL_set_accept_state(tls_.get());
  }

  int descriptor() const { return socket_.get(); }
  short awaited() const { return awaited_; }
  clock::time_point end() const { return end_; }

  /// Goes on as far as the socket allows. False: the connection is over.
  template <class Answer>
  bool go_on(Answer&& answer) {
    if (tls_ && !began_) {
      char first = 0;
      ssize_t seen = ::recv(socket_.get(), &first, 1, MSG_PEEK);
      if (seen < 0)
        return errno == EAGAIN || errno == EINTR;
      began_ = true;
      if (constexpr char handshake = 22; seen == 1 && first != handshake) {
        tls_.reset();
        respond(text_of(plain_text(400, "this port speaks TLS: begin the address with https://")));
      }
    }
    if (!answers_) {
      if (!receive())
        return false;
      size_t end = head_.find("\r\n\r\n");
      if (end != std::string::npos)
        respond(answer(std::string_view(head_).substr(0, end + 4)));
      else if (head_.size() > head_bytes_max)
        respond(text_of(plain_text(431, "expected a request of at most 16 KiB")));
      else
        return true;
    }
    while (sent_ < answer_.size()) {
      ssize_t count = write(answer_.data() + sent_, answer_.size() - sent_);
      if (count <= 0)
        return count == waits;
      sent_ += static_cast<size_t>(count);
    }
    if (!shut_) {
      shut_ = true;
      if (tls_) {
        SSL_shutdown(tls_.get());
        ERR_clear_error(); // the next connection would find what is left
      }
      ::shutdown(socket_.get(), SHUT_WR);
    }
    // Closing a socket with unread bytes would reset the connection before the client has read the answer.
    awaited_ = POLLIN;
    char rest[4096];
    for (size_t dropped = 0; dropped < dropped_bytes;) {
      ssize_t count = ::recv(socket_.get(), rest, sizeof rest, 0);
      if (count <= 0)
        return count < 0 && (errno == EAGAIN || errno == EINTR);
      dropped += static_cast<size_t>(count);
    }
    return true;
  }

 private:
  static constexpr ssize_t over = 0, waits = -1;

  void respond(std::string text) {
    answers_ = true;
    answer_ = std::move(text);
  }

  /// False: the connection is over.
  bool receive() {
    char piece[4096];
    while (head_.size() <= head_bytes_max && head_.find("\r\n\r\n") == std::string::npos) {
      ssize_t count = tls_ ? of_tls(SSL_read(tls_.get(), piece, sizeof piece))
                           : of_socket(::recv(socket_.get(), piece, sizeof piece, 0), POLLIN);
      if (count <= 0)
        return count == waits;
      head_.append(piece, static_cast<size_t>(count));
    }
    return true;
  }

  ssize_t write(const char* data, size_t bytes) {
    if (!tls_)
      return of_socket(::send(socket_.get(), data, bytes, MSG_NOSIGNAL), POLLOUT);
    return of_tls(SSL_write(tls_.get(), data, static_cast<int>(std::min<size_t>(bytes, 1 << 20))));
  }

  ssize_t of_socket(ssize_t count, short event) {
    awaited_ = event;
    if (count >= 0)
      return count;
    return errno == EAGAIN || errno == EINTR ? waits : over;
  }

  ssize_t of_tls(int count) {
    if (count > 0)
      return count;
    int why = SSL_get_error(tls_.get(), count);
    ERR_clear_error();
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
      tls_.reset(); // it may not be used again
      return over;
    }
    awaited_ = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return waits;
  }

  unique_fd socket_;
  std::unique_ptr<SSL, void (*)(SSL*)> tls_; // ends before the socket
  clock::time_point end_;
  std::string head_, answer_;
  size_t sent_ = 0;
  bool began_ = false, answers_ = false, shut_ = false;
  short awaited_ = POLLIN;
};

struct socket_address {
  explicit socket_address(const numeric_address& of) {
    if (of.host.find(':') == std::string::npos) {
      auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
      v4.sin_family = AF_INET;
      v4.sin_port = htons(of.port);
      inet_pton(AF_INET, of.host.c_str(), &v4.sin_addr);
      length = sizeof v4;
    } else {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(of.port);
      inet_pton(AF_INET6, of.host.c_str(), &v6.sin6_addr);
      length = sizeof v6;
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr_storage storage{};
  socklen_t length = 0;
};

uint16_t port_of(int descriptor) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&storage), &length);
  // The port has the same place in both kinds of addresses.
  return ntohs(reinterpret_cast<sockaddr_in&>(storage).sin_port);
}

} // namespace

class http_server::running {
 public:
  http_options options;

  running(http_options with, unique_fd listening, unique_fd wake, certificate keys)
      : options(std::move(with)), listening_(std::move(listening)), keys_(std::move(keys)),
        wake_(std::move(wake)), thread_([this] { run(); }) {}

  ~running() {
    {
      std::lock_guard guard(mutex_);
      ends_ = true;
    }
    wake();
    thread_.join();
  }

  void serve(std::string path, std::function<http_answer()> answer, bool open) {
    std::lock_guard guard(mutex_);
    routes_[std::move(path)] = {std::move(answer), open};
  }

  void repeat(std::chrono::milliseconds period, std::function<void()> work) {
    {
      std::lock_guard guard(mutex_);
      period_ = period;
      work_ = std::move(work);
    }
    wake();
  }

 private:
  struct route {
    std::function<http_answer()> answer;
    bool open = false;
  };

  void wake() { ::eventfd_write(wake_.get(), 1); }

  void run() {
    sigset_t all;
    sigfillset(&all); // signals are for others, and a client that leaves raises none
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (auto next = repeated()) {
      const bool accepts = clock::now() >= accepts_from_;
      std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}, {accepts ? listening_.get() : -1, POLLIN, 0}};
      if (!accepts)
        next = std::min(*next, accepts_from_);
      for (const http_peer& peer : peers_) {
        watched.push_back({peer.descriptor(), peer.awaited(), 0});
        next = std::min(*next, peer.end());
      }
      auto left = *next == clock::time_point::max()
                      ? -1
                      : std::chrono::ceil<std::chrono::milliseconds>(*next - clock::now()).count();
      ::poll(watched.data(), watched.size(),
             left < 0 && *next != clock::time_point::max() ? 0 : static_cast<int>(left));
      eventfd_t woken = 0;
      ::eventfd_read(wake_.get(), &woken);
      go_on(watched);
      if (watched[1].revents != 0)
        accept_peers();
    }
  }

  /// Does the repeated work if it is time. Returns when it is next; nothing: the server ends.
  std::optional<clock::time_point> repeated() {
    std::function<void()> work;
    {
      std::lock_guard guard(mutex_);
      if (ends_)
        return std::nullopt;
      if (!work_)
        return clock::time_point::max();
      if (clock::now() < due_)
        return due_;
      work = work_;
      due_ = clock::now() + period_;
    }
    work();
    return due_;
  }

  void go_on(const std::vector<pollfd>& watched) {
    auto now = clock::now();
    size_t place = 2;
    for (auto peer = peers_.begin(); peer != peers_.end(); ++place) {
      bool ready = watched[place].revents != 0;
      bool lives = now < peer->end() &&
                   (!ready || peer->go_on([this](std::string_view head) { return answer(head); }));
      peer = lives ? std::next(peer) : peers_.erase(peer);
    }
  }

  void accept_peers() {
    if (auto read = keys_.follow(); !read)
      options.warn("the certificate of the metrics is still the former one: " + read.error().text);
    for (size_t accepted = 0; accepted < peers_max;
         ++accepted) { // those who are there have their turns as well
      unique_fd peer(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!peer) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
          pause_accepting(errno);
        return;
      }
      cannot_accept_ = false;
      if (peers_.size() == peers_max)
        peers_.pop_front();
      peers_.emplace_back(std::move(peer), keys_.get(), clock::now() + peer_time);
    }
  }

  /// The listening socket stays ready meanwhile, and would be polled without end.
  void pause_accepting(int why) {
    if (!std::exchange(cannot_accept_, true))
      options.warn(
          std::string("metrics cannot accept connections: ") + std::strerror(why) +
          "; it is tried again until it works; raise RLIMIT_NOFILE (ulimit -n, LimitNOFILE= in systemd)");
    accepts_from_ = clock::now() + accept_pause;
  }

  std::string answer(std::string_view head) {
    auto request = parse_head(head);
    if (!request)
      return text_of(plain_text(400, "expected a request of HTTP/1.1"));
    route found;
    {
      std::lock_guard guard(mutex_);
      if (auto known = routes_.find(request->path); known != routes_.end())
        found = known->second;
    }
    bool body = request->method != "HEAD";
    if (!found.open && !options.token.empty() && !has_token(request->authorization, options.token))
      return text_of(plain_text(401, "expected the token of metrics.token_file"), body,
                     "WWW-Authenticate: Basic realm=\"terraced\", charset=\"UTF-8\"\r\n");
    if (request->method != "GET" && body)
      return text_of(plain_text(405, "expected GET"), true, "Allow: GET, HEAD\r\n");
    if (!found.answer)
      return text_of(plain_text(404, "expected /, /metrics, /healthz or /readyz"), body);
    return text_of(found.answer(), body);
  }

  std::mutex mutex_;
  std::map<std::string, route, std::less<>> routes_;
  std::chrono::milliseconds period_{0};
  std::function<void()> work_;
  bool ends_ = false;

  // Of the thread alone.
  clock::time_point due_{}, accepts_from_{};
  bool cannot_accept_ = false; ///< told
  std::list<http_peer> peers_; // the oldest first
  unique_fd listening_;
  certificate keys_;

  unique_fd wake_;
  std::thread thread_; // last, because it uses the others
};

result<void> check_tls_file(const std::string& file) {
  auto read = read_tls_file(file);
  if (!read)
    return tl::unexpected(read.error());
  return {};
}

result<std::unique_ptr<http_server>> http_server::listen(const http_options& options) {
  certificate keys;
  if (!options.tls_file.empty()) {
    auto read = read_tls_file(options.tls_file);
    if (!read)
      return tl::unexpected(read.error());
    keys = certificate(options.tls_file, std::move(*read));
  }
  const socket_address at(options.address);
  unique_fd listening(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int on = 1; // a port of connections that have just ended is free
  if (listening)
    ::setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!listening || ::bind(listening.get(), at.get(), at.length) != 0 || ::listen(listening.get(), 64) != 0) {
    int why = errno;
    std::string holder = why == EADDRINUSE ? port_holder(options.address) : "";
    return fail(errc::busy, holder.empty() ? "(" + std::string(std::strerror(why)) + ")"
                                           : "because " + holder + " listens on that port");
  }
  unique_fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake)
    return fail(errc::busy, "(" + std::string(std::strerror(errno)) + ")");
  http_options with = options;
  with.address.port = port_of(listening.get());
  return std::unique_ptr<http_server>(new http_server(
      std::make_unique<running>(std::move(with), std::move(listening), std::move(wake), std::move(keys))));
}

http_server::http_server(std::unique_ptr<running> server) : running_(std::move(server)) {}
http_server::~http_server() = default;

const numeric_address& http_server::address() const { return running_->options.address; }

void http_server::serve(std::string path, std::function<http_answer()> answer, bool open) {
  running_->serve(std::move(path), std::move(answer), open);
}

void http_server::repeat(std::chrono::milliseconds period, std::function<void()> work) {
  running_->repeat(period, std::move(work));
}

namespace fs = std::filesystem;

namespace {

constexpr const char* listening = "0A"; // TCP_LISTEN in /proc/net/tcp

/// Adds the inodes of the sockets in a table of the kernel that listen on the port, each as /proc/PID/fd shows it.
void add_listeners(const char* table, uint16_t port, std::string& sockets) {
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line); // skips the header
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
          inode))
      continue;
    size_t colon = local.rfind(':');
    if (state == listening && colon != std::string::npos &&
        std::stoul(local.substr(colon + 1), nullptr, 16) == port)
      sockets += "socket:[" + inode + "]\n";
  }
}

bool has_one_of(const fs::path& process, const std::string& sockets) {
  std::error_code failed;
  for (fs::directory_iterator fd(process / "fd", failed), end; !failed && fd != end; fd.increment(failed)) {
    std::error_code unreadable;
    auto target = fs::read_symlink(fd->path(), unreadable).string();
    if (!unreadable && target.starts_with("socket:[") && sockets.find(target + "\n") != std::string::npos)
      return true;
  }
  return false;
}

} // namespace

std::string port_holder(const numeric_address& at) {
  std::string sockets;
  add_listeners("/proc/net/tcp", at.port, sockets);
  add_listeners("/proc/net/tcp6", at.port, sockets);
  if (at.port == 0 || sockets.empty())
    return {};
  std::error_code failed;
  for (fs::directory_iterator process("/proc", failed), end; !failed && process != end;
       process.increment(failed)) {
    std::string number = process->path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos || !has_one_of(process->path(), sockets))
      continue;
    std::string name;
    std::getline(std::ifstream(process->path() / "comm"), name);
    return "process " + number + " (" + name + ")";
  }
  return "another process";
}

} // namespace terrace::metrics
