#include "remote/store_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

namespace terrace::remote {

namespace {

template <class Address>
store_address made_of(std::string_view text, const Address& address) {
  store_address made{.text = std::string(text), .length = sizeof address};
  std::memcpy(&made.bytes, &address, sizeof address);
  return made;
}

std::optional<store_address> parse_path(std::string_view text) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (text.size() >= sizeof address.sun_path || text.find('\0') != std::string_view::npos)
    return std::nullopt;
  std::memcpy(address.sun_path, text.data(), text.size());
  return made_of(text, address);
}

std::optional<store_address> parse_port(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return std::nullopt;
  uint16_t port = 0;
  auto digits = text.substr(colon + 1);
  auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (wrong != std::errc() || end != digits.data() + digits.size() || port == 0)
    return std::nullopt;
  std::string host(text.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    host = host.substr(1, host.size() - 2);
    if (::inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1)
      return std::nullopt;
    auto made = made_of(text, address);
    made.name = std::move(host);
    return made;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    return std::nullopt;
  auto made = made_of(text, address);
  made.name = std::move(host);
  return made;
}

constexpr size_t sentinels_max = 16;

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

result<store_address> parse_sentinels(std::string_view text) {
  constexpr std::string_view expected =
      "the numeric addresses of sentinels and the name of the primary that they watch, such as "
      "sentinel://10.0.0.7:26379,10.0.0.8:26379/NAME, were expected";
  const auto slash = text.rfind('/');
  store_address made;
  made.primary = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  auto left = text.substr(0, slash);
  bool more = true;
  while (more && made.sentinels.size() < sentinels_max) {
    const auto comma = left.find(',');
    auto one = parse_port(left.substr(0, comma));
    if (!one)
      break;
    one->text = left.substr(0, comma);
    made.sentinels.push_back(std::move(*one));
    more = comma != std::string_view::npos;
    left = more ? left.substr(comma + 1) : std::string_view();
  }
  if (more || !is_host_name(made.primary))
    return fail(errc::bad_request, std::string(expected));
  return made;
}

} // namespace

result<store_address> parse_store_address(std::string_view text) {
  constexpr std::string_view of_sentinels = "sentinel://";
  if (text.starts_with(of_sentinels)) {
    auto made = parse_sentinels(text.substr(of_sentinels.size()));
    if (made)
      made->text = text;
    return made;
  }
  constexpr std::string_view with_tls = "rediss://", with_name = "?name=";
  const bool tls = text.starts_with(with_tls);
  auto where = tls ? text.substr(with_tls.size()) : text;
  std::string_view name;
  if (auto at = where.find(with_name); tls && at != std::string_view::npos) {
    name = where.substr(at + with_name.size());
    where = where.substr(0, at);
    if (!is_host_name(name))
      return fail(errc::bad_request, "the name of a host, such as cache.example, was expected behind ?name=");
  }
  auto parsed = where.starts_with('/') && !tls ? parse_path(where) : parse_port(where);
  if (!parsed)
    return fail(errc::bad_request,
                "the path of a Unix socket of at most 107 bytes, or a numeric address with a port "
                "such as 10.0.0.7:6379 or [fd00::7]:6379, or one behind rediss:// for TLS or sentinel:// for "
                "sentinels, was expected");
  parsed->text = text;
  parsed->tls = tls;
  if (!name.empty())
    parsed->name = name;
  return *parsed;
}

} // namespace terrace::remote
