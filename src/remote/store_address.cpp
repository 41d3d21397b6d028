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

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

result<store_address> parse_server(std::string_view text, bool tls) {
  auto parsed = text.starts_with('/') && !tls ? parse_path(text) : parse_port(text);
  if (!parsed)
    return fail(errc::bad_request,
                "the path of a Unix socket of at most 107 bytes, or a numeric address with a port "
                "such as 10.0.0.7:6379 or [fd00::7]:6379, or one behind rediss:// for TLS, sentinel:// for "
                "sentinels, cluster:// for nodes of a cluster, s3:// for a bucket or plugin:// for a plugin, "
                "was expected");
  return std::move(*parsed);
}

/// Takes addresses with commas between them; empty: one is none, or there are too many.
std::vector<store_address> parse_guides(std::string_view text) {
  std::vector<store_address> made;
  for (bool more = true; more && made.size() < store_address::guides_max;) {
    const auto comma = text.find(',');
    auto one = parse_port(text.substr(0, comma));
    if (!one)
      return {};
    one->text = text.substr(0, comma);
    made.push_back(std::move(*one));
    more = comma != std::string_view::npos;
    text = more ? text.substr(comma + 1) : std::string_view();
    if (!more)
      return made;
  }
  return {};
}

result<store_address> parse_sentinels(std::string_view text) {
  const auto slash = text.rfind('/');
  store_address made{.at = store_address::kind::sentinels};
  made.primary = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  made.guides = parse_guides(text.substr(0, slash));
  if (made.guides.empty() || !is_host_name(made.primary))
    return fail(errc::bad_request,
                "the numeric addresses of sentinels and the name of the primary that they watch, such as "
                "sentinel://10.0.0.7:26379,10.0.0.8:26379/NAME, were expected");
  return made;
}

result<store_address> parse_cluster(std::string_view text) {
  store_address made{.at = store_address::kind::cluster};
  made.guides = parse_guides(text);
  if (made.guides.empty())
    return fail(
        errc::bad_request,
        "the numeric addresses of some nodes of a cluster, such as cluster://10.0.0.7:6379,10.0.0.8:6379, "
        "were expected");
  return made;
}

bool is_bucket_name(std::string_view text) {
  return text.size() >= 3 && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
         });
}

bool is_region(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
  });
}

/// A name, a numeric address, or one of IPv6 in brackets, with a port or without. Empty: it is none. A port that the scheme means
/// anyway is left out, as HTTP clients do in the header Host.
std::string parse_host(std::string_view text, bool tls) {
  const auto end = text.starts_with('[') ? text.find(']') + 1 : std::min(text.find(':'), text.size());
  const auto name = text.substr(0, end);
  const auto port = text.substr(std::min(end, text.size()));
  const bool numeric = name.starts_with('[');
  in6_addr address{};
  if (numeric ? ::inet_pton(AF_INET6, std::string(name.substr(1, name.size() - 2)).c_str(), &address) != 1
              : !is_host_name(name) || name.find('_') != std::string_view::npos)
    return {};
  if (port.empty())
    return std::string(name);
  uint16_t number = 0;
  const char* last = port.data() + port.size();
  auto [after, wrong] = std::from_chars(port.data() + 1, last, number);
  if (port.front() != ':' || wrong != std::errc() || after != last || number == 0)
    return {};
  return number == (tls ? 443 : 80) ? std::string(name) : std::string(name) + ":" + std::to_string(number);
}

result<store_address> parse_bucket(std::string_view text, bool tls) {
  if (!knows_buckets())
    return fail(errc::bad_request, "a Valkey or Redis server was expected: this build has no libcurl, which "
                                   "buckets need; build it with the "
                                   "package libcurl4-openssl-dev installed");
  constexpr std::string_view with_region = "?region=";
  store_address made{.at = store_address::kind::bucket};
  const auto question = std::min(text.find('?'), text.size());
  const auto place = text.substr(0, question), rest = text.substr(question);
  const auto slash = std::min(place.find('/'), place.size());
  made.host = parse_host(place.substr(0, slash), tls);
  made.bucket = place.substr(std::min(slash + 1, place.size()));
  made.region = rest.starts_with(with_region) ? rest.substr(with_region.size())
                : rest.empty()                ? "us-east-1"
                                              : "";
  if (made.host.empty() || !is_bucket_name(made.bucket) || !is_region(made.region))
    return fail(errc::bad_request,
                "a host and the name of a bucket, such as s3://10.0.0.7:9000/BUCKET or "
                "s3+tls://s3.eu-central-1.amazonaws.com/BUCKET?region=eu-central-1, were expected");
  return made;
}

/// The name of a Python module: "fs", or "company.kv_store".
bool is_module_name(std::string_view text) {
  const auto may_begin = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  bool begins = true; // a word
  for (const unsigned char c : text) {
    if (begins ? !may_begin(c) : !may_begin(c) && std::isdigit(c) == 0 && c != '.')
      return false;
    begins = c == '.';
  }
  return !begins && text.size() <= store_address::plugin_name_bytes_max;
}

/// Options such as "path=/mnt/kv&bytes=1TiB"; the plugin itself knows which there are.
bool are_plugin_options(std::string_view text) {
  while (!text.empty()) {
    const auto one = text.substr(0, text.find('&'));
    if (one.find('=') == std::string_view::npos || one.front() == '=')
      return false;
    text.remove_prefix(one.size());
    if (text.size() == 1)
      return false; // nothing behind the last '&'
    text.remove_prefix(text.empty() ? 0 : 1);
  }
  return true;
}

result<store_address> parse_plugin(std::string_view text) {
  const auto question = std::min(text.find('?'), text.size());
  store_address made{.at = store_address::kind::plugin};
  made.plugin = text.substr(0, question);
  made.plugin_options = text.substr(std::min(question + 1, text.size()));
  const bool printable =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
  if (!is_module_name(made.plugin) || !printable ||
      made.plugin_options.size() > store_address::plugin_options_bytes_max || question + 1 == text.size() ||
      !are_plugin_options(made.plugin_options))
    return fail(errc::bad_request,
                "the name of a plugin, and its options without spaces (write %20 for one), such as "
                "plugin://fs?path=/mnt/kv&bytes=1TiB, were expected");
  return made;
}

/// Takes "reads=replicas" out of the options of an address. True: it was among them.
result<bool> take_reads(std::string& where, store_address::kind at) {
  constexpr std::string_view name = "reads=";
  size_t begin = where.find('?');
  while (begin != std::string::npos && where.compare(begin + 1, name.size(), name) != 0)
    begin = where.find('&', begin + 1);
  if (at == store_address::kind::plugin || begin == std::string::npos)
    return false; // a plugin knows its own options
  if (at != store_address::kind::cluster)
    return fail(errc::bad_request,
                "an address without reads= was expected, because only a cluster has replicas "
                "that are read; leave it out, or name nodes of a cluster, such as "
                "cluster://10.0.0.7:6379?reads=replicas");
  const size_t value = begin + 1 + name.size(), end = std::min(where.find('&', value), where.size());
  if (where.compare(value, end - value, "replicas") != 0)
    return fail(errc::bad_request,
                "reads=replicas was expected behind the nodes of a cluster, such as "
                "cluster://10.0.0.7:6379?reads=replicas; without it only primaries are read");
  if (where[begin] == '?' && end != where.size())
    where.erase(begin + 1, end - begin); // '?' stays in front of the next one
  else
    where.erase(begin, end - begin);
  return true;
}

} // namespace

bool knows_buckets() { return TERRACE_WITH_CURL != 0; }

result<store_address> parse_store_address(std::string_view text) {
  using enum store_address::kind;
  struct {
    std::string_view scheme;
    store_address::kind at;
    bool tls;
  } constexpr schemes[] = {{"rediss://", server, true},          {"sentinel://", sentinels, false},
                           {"sentinel+tls://", sentinels, true}, {"cluster://", cluster, false},
                           {"cluster+tls://", cluster, true},    {"s3://", bucket, false},
                           {"s3+tls://", bucket, true},          {"plugin://", plugin, false}};
  std::string given(text);
  store_address::kind at = server;
  bool tls = false;
  for (const auto& each : schemes)
    if (text.starts_with(each.scheme)) {
      given = text.substr(each.scheme.size());
      at = each.at;
      tls = each.tls;
    }
  auto reads_replicas = take_reads(given, at);
  if (!reads_replicas)
    return tl::unexpected(reads_replicas.error());
  std::string_view where = given;
  constexpr std::string_view with_name = "?name=";
  std::string_view name;
  if (auto begin = where.find(with_name); tls && at != bucket && begin != std::string_view::npos) {
    name = where.substr(begin + with_name.size());
    where = where.substr(0, begin);
    if (!is_host_name(name))
      return fail(errc::bad_request, "the name of a host, such as cache.example, was expected behind ?name=");
  }
  auto parsed = at == sentinels ? parse_sentinels(where)
                : at == cluster ? parse_cluster(where)
                : at == bucket  ? parse_bucket(where, tls)
                : at == plugin  ? parse_plugin(where)
                                : parse_server(where, tls);
  if (!parsed)
    return parsed;
  parsed->text = text;
  parsed->tls = tls;
  parsed->reads_replicas = *reads_replicas;
  if (!name.empty())
    parsed->name = name;
  for (store_address& guide : parsed->guides)
    if (!name.empty())
      guide.name = name;
  return parsed;
}

} // namespace terrace::remote
