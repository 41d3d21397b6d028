#include "tests/support/slow_link.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <stdexcept>
#include <vector>

namespace terrace::test {

namespace {

using link_clock = std::chrono::steady_clock;

constexpr size_t piece_bytes = 16 << 10;
constexpr size_t kept_bytes = 1 << 20; ///< in one direction of a connection; the sender waits then

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw std::runtime_error("the path of a socket is too long: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// What one end sends to the other.
struct one_way {
  struct piece {
    link_clock::time_point due;
    std::vector<char> bytes;
    size_t sent = 0;
  };
  int from, to;
  bool limited;
  std::deque<piece> pieces{};
  size_t kept = 0;
  bool blocked = false, ended = false;
};

struct link_connection {
  unique_fd client, server;
  one_way up, down;
  bool over = false;
};

} // namespace

slow_link::slow_link(ends between)
    : between_(std::move(between)), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      wakes_(::eventfd(0, EFD_CLOEXEC)) {
  const auto address = address_of(between_.listens_at);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 16) != 0)
    throw std::runtime_error("cannot listen at " + between_.listens_at + ": " + std::strerror(errno));
  thread_ = std::thread([this] { work(); });
}

slow_link::~slow_link() {
  ends_ = true;
  wake();
  thread_.join();
  ::unlink(between_.listens_at.c_str());
}

void slow_link::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wakes_.get(), &one, sizeof one);
}

void slow_link::cut() {
  cuts_ = true;
  wake();
}

void slow_link::become(const speed& as) {
  bytes_per_s_ = as.bytes_per_s;
  round_trip_us_ = as.round_trip.count();
}

void slow_link::work() {
  std::list<link_connection> all;
  auto free = link_clock::now(); // when the limited direction has passed on all that it has
  while (!ends_) {
    const auto now = link_clock::now();
    auto next_due = link_clock::time_point::max();
    std::vector<pollfd> polled{{wakes_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (link_connection& each : all)
      for (one_way* way : {&each.up, &each.down}) {
        const bool reads = !way->ended && way->kept < kept_bytes;
        polled.push_back({reads ? way->from : -1, POLLIN, 0});
        polled.push_back({way->blocked ? way->to : -1, POLLOUT, 0});
        if (!way->blocked && !way->pieces.empty())
          next_due = std::min(next_due, way->pieces.front().due);
      }
    timespec wait{};
    if (next_due != link_clock::time_point::max()) {
      const auto left = std::max(next_due - now, link_clock::duration(0));
      wait.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
      wait.tv_nsec = (left % std::chrono::seconds(1)).count();
    }
    ::ppoll(polled.data(), polled.size(), next_due == link_clock::time_point::max() ? nullptr : &wait,
            nullptr);
    if (cuts_.exchange(false)) {
      uint64_t times = 0;
      [[maybe_unused]] const auto read = ::read(wakes_.get(), &times, sizeof times);
      all.clear();
      continue;
    }
    size_t at = 2;
    const auto delay = std::chrono::microseconds(round_trip_us_ / 2);
    const double rate = bytes_per_s_;
    for (link_connection& each : all)
      for (one_way* way : {&each.up, &each.down}) {
        const bool readable = polled[at++].revents != 0;
        if (polled[at++].revents != 0)
          way->blocked = false;
        if (readable) {
          std::vector<char> bytes(piece_bytes);
          const auto count = ::recv(way->from, bytes.data(), bytes.size(), MSG_DONTWAIT);
          if (count == 0 || (count < 0 && errno != EAGAIN))
            way->ended = true;
          if (count > 0) {
            bytes.resize(static_cast<size_t>(count));
            auto due = link_clock::now() + delay;
            if (way->limited && rate > 0) {
              const std::chrono::duration<double> takes(static_cast<double>(count) / rate);
              free = due = std::max(due, free) + std::chrono::duration_cast<link_clock::duration>(takes);
            }
            way->kept += bytes.size();
            way->pieces.push_back({due, std::move(bytes)});
          }
        }
        while (!way->blocked && !way->pieces.empty() && way->pieces.front().due <= link_clock::now()) {
          one_way::piece& first = way->pieces.front();
          const auto count = ::send(way->to, first.bytes.data() + first.sent, first.bytes.size() - first.sent,
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
          if (count < 0) {
            way->blocked = errno == EAGAIN;
            each.over = each.over || errno != EAGAIN;
            break;
          }
          first.sent += static_cast<size_t>(count);
          way->kept -= static_cast<size_t>(count);
          if (way->limited)
            passed_ += static_cast<uint64_t>(count);
          if (first.sent == first.bytes.size())
            way->pieces.pop_front();
        }
        each.over = each.over || (way->ended && way->pieces.empty());
      }
    all.remove_if([](const link_connection& each) { return each.over; });
    if (polled[1].revents == 0)
      continue;
    unique_fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    unique_fd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = address_of(between_.leads_to);
    if (!client || ::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      continue; // the client is told by the end of its connection
    link_connection& made = all.emplace_back();
    made.client = std::move(client);
    made.server = std::move(server);
    made.up = {made.client.get(), made.server.get(), false};
    made.down = {made.server.get(), made.client.get(), true};
  }
}

} // namespace terrace::test
