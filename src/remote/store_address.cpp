#include "remote/store_address.hpp"

#include "base/nearest_name.hpp"
#include "remote/store_commands.hpp"

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

struct address_scheme {
  std::string_view text;
  store_address::kind at;
  bool tls;
};
constexpr address_scheme address_schemes[] = {{"rediss://", store_address::kind::server, true},
                                              {"sentinel://", store_address::kind::sentinels, false},
                                              {"sentinel+tls://", store_address::kind::sentinels, true},
                                              {"cluster://", store_address::kind::cluster, false},
                                              {"cluster+tls://", store_address::kind::cluster, true},
                                              {"s3://", store_address::kind::bucket, false},
                                              {"s3+tls://", store_address::kind::bucket, true},
                                              {"plugin://", store_address::kind::plugin, false}};

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

constexpr uint16_t usual_port = 6379, usual_port_with_tls = 6380, usual_port_of_sentinels = 26379;

bool is_port(std::string_view digits) {
  uint16_t port = 0;
  auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return wrong == std::errc() && end == digits.data() + digits.size() && port != 0;
}

bool is_ipv6(std::string_view text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

/// Says what is wrong with a host and its port, which `parse_port` has refused. `usual`: for the example.
wrong_address mistake_in_place(std::string_view text, uint16_t usual) {
  const std::string port = ":" + std::to_string(usual);
  const std::string example = "write it as in 10.0.0.7" + port + " or cache.example" + port;
  if (text.empty())
    return {"a host with a port", example};
  if (text.find('@') != std::string_view::npos)
    return {"a host with a port, and no user or password",
            "write the password into the first line of password_file, and the user into its second"};
  if (text.find('/') != std::string_view::npos)
    return {"a host with a port, and nothing behind it", example};
  const wrong_address name{
      "the name of a host, of letters, digits, '.', '-' and '_', or four numbers of at most 255", example};
  const auto of_port = [&](const std::string& host, std::string_view given) {
    return wrong_address{given.empty() ? "a port behind the host" : "a port of 1 to 65535 behind the host",
                         "write " + host + port};
  };
  if (text.front() == '[') {
    const auto end = text.find(']');
    if (end == std::string_view::npos || !is_ipv6(text.substr(1, end - 1)))
      return {"an IPv6 address in the brackets", "write it as in [fd00::7]" + port};
    return of_port(std::string(text.substr(0, end + 1)), text.substr(std::min(end + 2, text.size())));
  }
  const auto colon = std::min(text.rfind(':'), text.size());
  const std::string host(text.substr(0, colon));
  const auto digits = text.substr(std::min(colon + 1, text.size()));
  if (is_ipv6(host) && is_port(digits))
    return {"an IPv6 address in brackets", "write [" + host + "]:" + std::string(digits)};
  if (is_ipv6(text))
    return {"an IPv6 address in brackets", "write [" + std::string(text) + "]" + port};
  in_addr numeric{};
  if (!can_be_resolved(host) && ::inet_pton(AF_INET, host.c_str(), &numeric) != 1)
    return name;
  return of_port(host, digits);
}

/// `scheme`: what stands before "://", and none of those that there are.
wrong_address mistake_in_scheme(std::string_view scheme, std::string_view rest) {
  if (scheme == "redis" || scheme == "valkey" || scheme == "tcp")
    return {"an address without " + std::string(scheme) + "://", "write " + std::string(rest)};
  if (scheme == "valkeys")
    return {"rediss:// for TLS", "write rediss://" + std::string(rest)};
  if (scheme == "http" || scheme == "https")
    return {"s3:// for a bucket, s3+tls:// with TLS",
            (scheme == "http" ? "write s3://" : "write s3+tls://") + std::string(rest)};
  std::vector<std::string_view> known;
  for (const address_scheme& each : address_schemes)
    known.push_back(each.text.substr(0, each.text.size() - 3));
  const std::string meant(nearest_name(scheme, known));
  std::string all;
  for (std::string_view each : known)
    all += (all.empty() ? "" : ", ") + std::string(each) + "://";
  return {"none of the schemes, or one of " + all, meant.empty()
                                                       ? "write 10.0.0.7:6379 for a Valkey or Redis server"
                                                       : "write " + meant + "://" + std::string(rest)};
}

parsed_address parse_server(std::string_view text, bool tls) {
  if (text.starts_with('/') && !tls) {
    if (auto parsed = parse_path(text))
      return std::move(*parsed);
    return text.find('\0') == std::string_view::npos
               ? wrong("the path of a Unix socket of at most 107 bytes, and it has " +
                           std::to_string(text.size()),
                       "choose a shorter path for the server's socket")
               : wrong("the path of a Unix socket without a zero byte", "leave it out");
  }
  if (auto parsed = parse_port(text))
    return std::move(*parsed);
  if (tls && text.starts_with('/'))
    return wrong("a host with a port behind rediss://", "write the path alone: a Unix socket needs no TLS");
  if (const auto end = text.find("://"); end != std::string_view::npos)
    return tl::unexpected(mistake_in_scheme(text.substr(0, end), text.substr(end + 3)));
  return tl::unexpected(mistake_in_place(text, tls ? usual_port_with_tls : usual_port));
}

/// Takes addresses with commas between them into `made`. Returns what is wrong with the first wrong one, or with their number.
std::optional<wrong_address> take_guides(std::string_view text, store_address& made, uint16_t usual,
                                         const std::string& example) {
  if (text.empty())
    return wrong_address{"the hosts and ports of some of them", "write them as in " + example};
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    const auto place = text.substr(0, comma);
    if (made.guides.size() == store_address::guides_max)
      return wrong_address{"at most " + std::to_string(store_address::guides_max) + " of them",
                           "name those that always run, as in " + example};
    auto one = parse_port(place);
    if (!one) {
      auto mistake = mistake_in_place(place, usual);
      mistake.expected += place.empty() ? " between the commas" : " in " + std::string(place);
      return mistake;
    }
    one->text = place;
    made.guides.push_back(std::move(*one));
    more = comma != std::string_view::npos;
    text = more ? text.substr(comma + 1) : std::string_view();
  }
  return std::nullopt;
}

parsed_address parse_sentinels(std::string_view text) {
  const std::string example = "sentinel://10.0.0.7:26379,10.0.0.8:26379/NAME";
  const auto slash = text.rfind('/');
  store_address made{.at = store_address::kind::sentinels};
  made.primary = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  if (auto mistake = take_guides(text.substr(0, slash), made, usual_port_of_sentinels, example))
    return tl::unexpected(std::move(*mistake));
  if (!is_host_name(made.primary))
    return wrong("the name of the primary that the sentinels watch, behind a '/'",
                 "write it as in " + example);
  return made;
}

parsed_address parse_cluster(std::string_view text) {
  store_address made{.at = store_address::kind::cluster};
  if (auto mistake = take_guides(text, made, usual_port, "cluster://10.0.0.7:6379,10.0.0.8:6379"))
    return tl::unexpected(std::move(*mistake));
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

namespace {

/// "10.0.0.7:6379", of "rediss://10.0.0.7:6379?name=cache" as well.
std::string host_and_port(std::string_view place) {
  place = place.substr(0, place.find_first_of("?( "));
  if (place.starts_with("rediss://"))
    place.remove_prefix(sizeof "rediss://" - 1);
  return place.starts_with('/') ? "HOST:PORT" : std::string(place);
}

} // namespace

std::string mistaken_scheme(const store_address& address, const std::string& place, server_mode mode,
                            bool guide) {
  const std::string tls = address.tls ? "+tls://" : "://";
  if (mode == server_mode::sentinel && !(guide && address.at == store_address::kind::sentinels))
    return "it is a sentinel: write sentinel" + tls + host_and_port(place) +
           "/NAME as address, with the name of the primary that it watches";
  if (mode == server_mode::cluster && address.at != store_address::kind::cluster)
    return "it is a node of a cluster: write cluster" + tls + host_and_port(place) + " as address";
  return {};
}

std::string scheme_of_no_guide(const store_address& address, const std::string& place) {
  return std::string("it is a server of its own, and no ") +
         (address.at == store_address::kind::sentinels ? "sentinel" : "node of a cluster") + ": write " +
         (address.tls ? "rediss://" : "") + host_and_port(place) + " as address";
}

bool knows_buckets() { return TERRACE_WITH_CURL != 0; }

tl::expected<store_address, wrong_address> parse_store_address(std::string_view text) {
  using enum store_address::kind;
  std::string_view where = text;
  store_address::kind at = server;
  bool tls = false;
  for (const address_scheme& each : address_schemes)
    if (text.starts_with(each.text)) {
      where = text.substr(each.text.size());
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
