#include "bench/bare_store.hpp"

#include "bench/harness.hpp"
#include "bench/sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace terrace::bench {

namespace {

constexpr uint64_t in_flight_bytes = 4 << 20; // redis-server is slower with more

std::string command(std::initializer_list<std::string_view> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (std::string_view word : words)
    text += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
  return text;
}

iovec area(const void* from, size_t bytes) { return {const_cast<void*>(from), bytes}; }

} // namespace

bare_store::bare_store(uint16_t port) : to_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int at_once = 1;
  ::setsockopt(to_.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  if (::connect(to_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    give_up("redis-server does not listen on port " + std::to_string(port));
}

void bare_store::send(std::span<const uint8_t> bytes) {
  if (!write_all(to_.get(), bytes))
    give_up("redis-server has closed the connection");
}

void bare_store::send(const std::string& text) {
  send({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string bare_store::line() {
  size_t end = 0;
  while ((end = lines_.find("\r\n")) == std::string::npos) {
    std::array<char, 4096> part;
    ssize_t count = ::recv(to_.get(), part.data(), part.size(), 0);
    if (count <= 0)
      give_up("redis-server has closed the connection");
    lines_.append(part.data(), static_cast<size_t>(count));
  }
  std::string first = lines_.substr(0, end);
  lines_.erase(0, end + 2);
  if (first.starts_with("-"))
    give_up("redis-server refuses a command: " + first);
  return first;
}

std::vector<std::string> bare_store::keys(std::string_view pattern) {
  send(command({"KEYS", pattern}));
  std::vector<std::string> found(std::stoul(line().substr(1)));
  if (found.empty())
    give_up("redis-server has no key like " + std::string(pattern));
  for (std::string& key : found) {
    line(); // its length
    key = line();
  }
  return found;
}

void bare_store::remove(const std::string& pattern) {
  send(command({"EVAL",
                "for _, key in ipairs(redis.call('keys', ARGV[1])) do redis.call('del', key) end return 1",
                "0", pattern}));
  line();
}

void bare_store::get(const std::vector<std::string>& keys, uint64_t value_bytes, std::span<uint8_t> into) {
  const size_t ahead = std::max<size_t>(1, in_flight_bytes / value_bytes);
  std::string head = "$" + std::to_string(value_bytes) + "\r\n", end = "\r\n";
  const std::string expected = head;
  size_t asked = 0;
  for (size_t done = 0; done < keys.size(); ++done) {
    std::string more;
    for (; asked < std::min(keys.size(), done + ahead); ++asked)
      more += command({"GET", keys[asked]});
    if (!more.empty())
      send(more);
    uint8_t* place = into.data() + done % (into.size() / value_bytes) * value_bytes;
    std::array<iovec, 3> areas{area(head.data(), head.size()), area(place, value_bytes), area(end.data(), 2)};
    msghdr message{};
    message.msg_iov = areas.data();
    message.msg_iovlen = areas.size();
    const auto all = static_cast<ssize_t>(head.size() + value_bytes + 2);
    if (::recvmsg(to_.get(), &message, MSG_WAITALL) != all || head != expected)
      give_up("redis-server has not sent a value of " + std::to_string(value_bytes) + " bytes");
  }
}

void bare_store::send_value(const std::string& head, std::span<const uint8_t> value) {
  std::array<iovec, 3> areas{area(head.data(), head.size()), area(value.data(), value.size()),
                             area("\r\n", 2)};
  msghdr message{};
  message.msg_iov = areas.data();
  message.msg_iovlen = areas.size();
  // A blocking socket takes all of it.
  if (::sendmsg(to_.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(head.size() + value.size() + 2))
    give_up("redis-server has closed the connection");
}

void bare_store::set(const std::vector<std::string>& keys, uint64_t value_bytes,
                     std::span<const uint8_t> from) {
  const size_t ahead = std::max<size_t>(1, in_flight_bytes / value_bytes);
  for (size_t sent = 0, done = 0; done < keys.size(); ++done) {
    for (; sent < std::min(keys.size(), done + ahead); ++sent)
      send_value("*3\r\n$3\r\nSET\r\n$" + std::to_string(keys[sent].size()) + "\r\n" + keys[sent] + "\r\n$" +
                     std::to_string(value_bytes) + "\r\n",
                 from.subspan(sent % (from.size() / value_bytes) * value_bytes, value_bytes));
    line();
  }
}

void bare_store::track() {
  send(command({"CLIENT", "TRACKING", "ON"}));
  line();
}

size_t bare_store::exist(std::span<const std::string> keys) {
  std::string all;
  for (const std::string& key : keys)
    all += command({"EXISTS", key});
  send(all);
  size_t found = 0;
  for (size_t i = 0; i < keys.size(); ++i)
    found += line() == ":1" ? 1 : 0;
  return found;
}

} // namespace terrace::bench
