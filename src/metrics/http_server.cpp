#include "metrics/http_server.hpp"

#include "base/unique_fd.hpp"

#include <CivetServer.h>

#include <arpa/inet.h>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sstream>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace terrace::metrics {

namespace {

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

bool has_token(const char* authorization, const std::string& token) {
  constexpr std::string_view bearer = "Bearer ", basic = "Basic ";
  std::string_view sent = authorization == nullptr ? "" : authorization;
  if (sent.starts_with(bearer))
    return same(sent.substr(bearer.size()), token);
  if (!sent.starts_with(basic))
    return false;
  std::string pair = decoded(sent.substr(basic.size()));
  size_t colon = pair.find(':');
  return colon != std::string::npos && same(std::string_view(pair).substr(colon + 1), token);
}

} // namespace

struct http_server::running : CivetHandler {
  http_options options;
  struct route {
    std::function<http_answer()> answer;
    bool open = false;
  };
  std::mutex mutex;
  std::map<std::string, route, std::less<>> routes;
  std::unique_ptr<CivetServer> server;

  bool handleGet(CivetServer*, mg_connection* peer) override {
    const mg_request_info* request = mg_get_request_info(peer);
    route found;
    {
      std::lock_guard guard(mutex);
      auto known = routes.find(std::string_view(request->local_uri == nullptr ? "" : request->local_uri));
      if (known != routes.end())
        found = known->second;
    }
    if (!found.open && !options.token.empty() &&
        !has_token(mg_get_header(peer, "Authorization"), options.token))
      return send(peer, {401, "text/plain; charset=utf-8", "expected the token of metrics.token_file\n"},
                  "WWW-Authenticate: Basic realm=\"terraced\", charset=\"UTF-8\"\r\n");
    if (!found.answer)
      return send(peer, {404, "text/plain; charset=utf-8", "expected /, /metrics, /healthz or /readyz\n"});
    return send(peer, found.answer());
  }

  static bool send(mg_connection* peer, const http_answer& answer, const char* more = "") {
    mg_printf(
        peer,
        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:\r\n%s\r\n",
        answer.status, mg_get_response_code_text(peer, answer.status), answer.type.c_str(),
        answer.body.size(), more);
    mg_write(peer, answer.body.data(), answer.body.size());
    return true;
  }

  ~running() override {
    if (!server)
      return;
    unique_fd stopped(eventfd(0, EFD_CLOEXEC));
    std::thread stop([&] {
      server.reset();
      eventfd_write(stopped.get(), 1);
    });
    while (stopped && wake_request(options.address, stopped.get()))
      ;
    stop.join();
  }
};

result<std::unique_ptr<http_server>> http_server::listen(const http_options& options) {
  auto made = std::make_unique<running>();
  made->options = options;
  std::vector<std::string> settings = {
      "listening_ports", options.address.text(), "num_threads", "2", "request_timeout_ms", "10000"};
  try {
    made->server = std::make_unique<CivetServer>(settings);
  } catch (const std::exception&) { // it says no more than "null context"
    std::string holder = port_holder(options.address);
    return fail(errc::busy, holder.empty() ? "" : "because " + holder + " listens on that port");
  }
  made->server->addHandler("**", *made);
  if (auto ports = made->server->getListeningPorts(); !ports.empty())
    made->options.address.port = static_cast<uint16_t>(ports.front());
  return std::unique_ptr<http_server>(new http_server(std::move(made)));
}

http_server::http_server(std::unique_ptr<running> server) : running_(std::move(server)) {}
http_server::~http_server() = default;

const numeric_address& http_server::address() const { return running_->options.address; }

void http_server::serve(std::string path, std::function<http_answer()> answer, bool open) {
  std::lock_guard guard(running_->mutex);
  running_->routes[std::move(path)] = {std::move(answer), open};
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

bool wake_request(const numeric_address& at, int stopped) {
  const numeric_address address = at.reachable();
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (address.host.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr);
    length = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr);
    length = sizeof v6;
  }
  unique_fd peer(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!peer || connect(peer.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0)
    return false;
  // HTTP/1.0 has no keep-alive: the server closes after its answer, or resets the connection if it stops
  // first.
  constexpr std::string_view request = "HEAD / HTTP/1.0\r\n\r\n";
  if (send(peer.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return true;
  pollfd either[] = {{peer.get(), POLLIN, 0}, {stopped, POLLIN, 0}};
  char answer[1024];
  for (;;) {
    if (poll(either, 2, -1) < 0 && errno != EINTR)
      return false;
    if (either[1].revents != 0)
      return false;
    if (either[0].revents != 0 && recv(peer.get(), answer, sizeof answer, 0) <= 0)
      return true;
  }
}

} // namespace terrace::metrics
