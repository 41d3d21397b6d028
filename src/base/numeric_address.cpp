#include "base/numeric_address.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace terrace {
namespace {

bool is_loopback_v4(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

bool is_loopback_v6(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET6, host.c_str(), &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
}

} // namespace

std::string numeric_address::text() const {
  auto name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return name + ":" + std::to_string(port);
}

bool numeric_address::is_loopback() const { return is_loopback_v4(host) || is_loopback_v6(host); }

numeric_address numeric_address::reachable() const {
  return {host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host, port};
}

result<numeric_address> parse_numeric_address(std::string_view text) {
  auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return fail(errc::bad_request, "an address and a port, such as 127.0.0.1:9464");
  numeric_address address;
  auto port = text.substr(colon + 1);
  auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (code != std::errc{} || end != port.data() + port.size())
    return fail(errc::bad_request, "a port from 0 to 65535 after the colon");
  address.host = text.substr(0, colon);
  bool bracketed = address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  if (bracketed)
    address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host == "localhost")
    address.host = "127.0.0.1";
  in_addr v4{};
  in6_addr v6{};
  if (bracketed ? inet_pton(AF_INET6, address.host.c_str(), &v6) != 1
                : inet_pton(AF_INET, address.host.c_str(), &v4) != 1)
    return fail(errc::bad_request, "a numeric address and a port, such as 127.0.0.1:9464 or [::1]:9464");
  return address;
}

result<numeric_address> parse_loopback_address(std::string_view text) {
  auto address = parse_numeric_address(text);
  if (address && !address->is_loopback())
    return fail(errc::bad_request, "a loopback address: 127.0.0.1, [::1] or localhost, and a port");
  return address;
}

} // namespace terrace
