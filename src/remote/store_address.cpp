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

using parsed_address = tl::expected<store_address, wrong_address>;

tl::unexpected<wrong_address> wrong(std::string expected, std::string fix) {
  return tl::unexpected(wrong_address{std::move(expected), std::move(fix)});
}

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

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

/// A name that can be resolved. One whose last label is a number is a mistaken numeric address.
bool can_be_resolved(std::string_view host) {
  const auto last = host.substr(host.rfind('.') + 1); // npos + 1 is 0
  return is_host_name(host) && host.find(':') == std::string_view::npos && host.front() != '.' &&
         host.front() != '-' &&
         (last.empty() || std::isdigit(static_cast<unsigned char>(last.front())) == 0 ||
          !std::all_of(last.begin(), last.end(), [](unsigned char c) { return std::isdigit(c) != 0; }));
}

/// A numeric address or the name of a host, with a port behind it.
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
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    if (!can_be_resolved(host))
      return std::nullopt;
    store_address named{.text = std::string(text), .host_name = host, .port = port};
    named.name = std::move(host);
    return named;
  }
  auto made = made_of(text, address);
  made.name = std::move(host);
  return made;
}

parsed_address parse_server(std::string_view text, bool tls) {
  auto parsed = text.starts_with('/') && !tls ? parse_path(text) : parse_port(text);
  if (!parsed)
    return wrong(
        tls ? "a host with a port behind rediss://"
            : "the path of a Unix socket of at most 107 bytes, or a host with a port",
        tls ? "write it as in rediss://10.0.0.7:6380, rediss://[fd00::7]:6380 or rediss://cache.example:6380"
            : "write it as in /run/valkey.sock, 10.0.0.7:6379, [fd00::7]:6379 or cache.example:6379, or "
              "begin it with rediss:// "
              "for "
              "TLS, sentinel:// for sentinels, cluster:// for nodes of a cluster, s3:// for a bucket or "
              "plugin:// for a plugin");
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

parsed_address parse_sentinels(std::string_view text) {
  const auto slash = text.rfind('/');
  store_address made{.at = store_address::kind::sentinels};
  made.primary = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  made.guides = parse_guides(text.substr(0, slash));
  if (made.guides.empty() || !is_host_name(made.primary))
    return wrong("the hosts and ports of at most 16 sentinels and the name of the primary that they watch",
                 "write them as in sentinel://10.0.0.7:26379,10.0.0.8:26379/NAME");
  return made;
}

parsed_address parse_cluster(std::string_view text) {
  store_address made{.at = store_address::kind::cluster};
  made.guides = parse_guides(text);
  if (made.guides.empty())
    return wrong("the hosts and ports of some nodes of a cluster, at most 16",
                 "write them as in cluster://10.0.0.7:6379,10.0.0.8:6379");
  return made;
}

/// Says what is wrong with the name of a bucket; nothing: it may be one.
std::optional<wrong_address> mistake_in_bucket(std::string_view name) {
  if (name.empty())
    return wrong_address{"the name of a bucket behind the host", "write it as in s3://10.0.0.7:9000/BUCKET"};
  if (name.ends_with('/') && name.find('/') + 1 == name.size())
    return wrong_address{"the name of a bucket without '/' behind it", "leave the last '/' out"};
  if (name.find('/') != std::string_view::npos)
    return wrong_address{"the name of a bucket without a path behind it",
                         "leave the path out: the option prefix says how names begin there"};
  if (name.size() < 3 || name.size() > 63)
    return wrong_address{"the name of a bucket with 3 to 63 characters, and it has " +
                             std::to_string(name.size()),
                         "give a bucket with such a name; stores have no others"};
  if (!std::ranges::all_of(
          name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_'; }))
    return wrong_address{"the name of a bucket of letters, digits, '.', '-' and '_'",
                         "leave other characters out"};
  return std::nullopt;
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

parsed_address parse_bucket(std::string_view text, bool tls) {
  if (!knows_buckets())
    return wrong(
        "a Valkey or Redis server or a plugin, because this build has no libcurl, which buckets need",
        "build it with the package libcurl4-openssl-dev installed");
  store_address made{.at = store_address::kind::bucket};
  const auto slash = std::min(text.find('/'), text.size());
  made.host = parse_host(text.substr(0, slash), tls);
  made.bucket = text.substr(std::min(slash + 1, text.size()));
  made.region = "us-east-1";
  if (!made.host.empty())
    if (auto mistake = mistake_in_bucket(made.bucket))
      return tl::unexpected(std::move(*mistake));
  if (made.host.empty())
    return wrong("a host and the name of a bucket",
                 "write them as in s3://10.0.0.7:9000/BUCKET or "
                 "s3+tls://s3.eu-central-1.amazonaws.com/BUCKET?region=eu-central-1");
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

parsed_address parse_plugin(std::string_view text) {
  const auto question = std::min(text.find('?'), text.size());
  store_address made{.at = store_address::kind::plugin};
  made.plugin = text.substr(0, question);
  made.plugin_options = text.substr(std::min(question + 1, text.size()));
  const bool printable =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
  if (!is_module_name(made.plugin) || !printable ||
      made.plugin_options.size() > store_address::plugin_options_bytes_max || question + 1 == text.size() ||
      !are_plugin_options(made.plugin_options))
    return wrong("the name of a plugin, and its options without spaces",
                 "write them as in plugin://fs?path=/mnt/kv&bytes=1TiB, and %20 for a space");
  return made;
}

// ---- options ----

/// An option behind '?'. All that there are for any kind are in `address_options`, but for those of a plugin, which it checks itself.
struct address_option {
  std::string_view name, whose;
  bool (*is_of)(store_address::kind at, bool tls);
  std::string_view value, fix; ///< that is expected, and how it is written
  bool (*accepts)(std::string_view value);
  void (*give)(store_address& to, std::string_view value);
};
constexpr address_option address_options[] = {
    {.name = "name",
     .whose = "servers with TLS have",
     .is_of = [](store_address::kind at, bool tls) { return tls && at != store_address::kind::bucket; },
     .value = "the name of a host that the certificates are for",
     .fix = "write it as in rediss://10.0.0.7:6380?name=cache.example",
     .accepts = is_host_name,
     .give =
         [](store_address& to, std::string_view value) {
           to.name = value;
           for (store_address& guide : to.guides)
             guide.name = value;
         }},
    {.name = "reads",
     .whose = "clusters have",
     .is_of = [](store_address::kind at, bool) { return at == store_address::kind::cluster; },
     .value = "replicas",
     .fix = "write cluster://10.0.0.7:6379?reads=replicas, or leave reads= out to read primaries alone",
     .accepts = [](std::string_view value) { return value == "replicas"; },
     .give = [](store_address& to, std::string_view) { to.reads_replicas = true; }},
    {.name = "region",
     .whose = "buckets have",
     .is_of = [](store_address::kind at, bool) { return at == store_address::kind::bucket; },
     .value = "a region of small letters, digits and '-'",
     .fix = "write it as in s3+tls://s3.eu-central-1.amazonaws.com/BUCKET?region=eu-central-1",
     .accepts = is_region,
     .give = [](store_address& to, std::string_view value) { to.region = value; }},
};

/// "name= and reads=", as an address like this one may have.
std::string options_of(const store_address& address) {
  std::string all;
  for (const address_option& each : address_options)
    if (each.is_of(address.at, address.tls))
      all += (all.empty() ? "" : " and ") + std::string(each.name) + "=";
  return all;
}

wrong_address no_such_option(const store_address& address, std::string_view given,
                             const address_option* of_others) {
  const std::string known = options_of(address);
  return {known.empty() ? "an address without '?', because this kind has no options"
                        : "no options but " + known + " for this kind of address",
          "leave " + std::string(given) + " out" +
              (of_others == nullptr
                   ? ""
                   : ": only " + std::string(of_others->whose) + " " + std::string(of_others->name) + "=")};
}

/// `text` is what stands behind '?', such as "name=cache.example&reads=replicas".
std::optional<wrong_address> take_options(store_address& address, std::string_view text) {
  std::vector<const address_option*> taken;
  for (bool more = true; more;) {
    const auto given = text.substr(0, text.find('&'));
    const auto name = given.substr(0, given.find('='));
    const auto value = given.substr(std::min(name.size() + 1, given.size()));
    const auto* option = std::ranges::find(address_options, name, &address_option::name);
    const bool known = option != std::end(address_options);
    if (!known || !option->is_of(address.at, address.tls))
      return no_such_option(address, given.empty() ? "the '?' or '&' at the end" : given,
                            known ? option : nullptr);
    const std::string whole = std::string(name) + "=";
    if (std::ranges::find(taken, option) != taken.end())
      return wrong_address{whole + " once", "leave one of the two out"};
    if (!option->accepts(value))
      return wrong_address{std::string(option->value) + " behind " + whole, std::string(option->fix)};
    option->give(address, value);
    taken.push_back(option);
    more = given.size() != text.size();
    text.remove_prefix(std::min(given.size() + 1, text.size()));
  }
  return std::nullopt;
}

} // namespace

bool knows_buckets() { return TERRACE_WITH_CURL != 0; }

tl::expected<store_address, wrong_address> parse_store_address(std::string_view text) {
  using enum store_address::kind;
  struct {
    std::string_view scheme;
    store_address::kind at;
    bool tls;
  } constexpr schemes[] = {{"rediss://", server, true},          {"sentinel://", sentinels, false},
                           {"sentinel+tls://", sentinels, true}, {"cluster://", cluster, false},
                           {"cluster+tls://", cluster, true},    {"s3://", bucket, false},
                           {"s3+tls://", bucket, true},          {"plugin://", plugin, false}};
  std::string_view where = text;
  store_address::kind at = server;
  bool tls = false;
  for (const auto& each : schemes)
    if (text.starts_with(each.scheme)) {
      where = text.substr(each.scheme.size());
      at = each.at;
      tls = each.tls;
    }
  const auto question = at == plugin ? std::string_view::npos : where.find('?');
  const auto options = where.substr(std::min(question, where.size()));
  where = where.substr(0, question);
  auto parsed = at == sentinels ? parse_sentinels(where)
                : at == cluster ? parse_cluster(where)
                : at == bucket  ? parse_bucket(where, tls)
                : at == plugin  ? parse_plugin(where)
                                : parse_server(where, tls);
  if (!parsed)
    return parsed;
  parsed->text = text;
  parsed->tls = tls;
  if (!options.empty())
    if (auto mistake = take_options(*parsed, options.substr(1)))
      return tl::unexpected(std::move(*mistake));
  return parsed;
}

} // namespace terrace::remote
