// Constraints between options of different structs: sockets, their groups, and the groups' shares of the
// tiers.
#include "base/numeric_address.hpp"
#include "base/tier_properties.hpp"
#include "daemon/settings.hpp"
#include "daemon/settings_table.hpp"
#include "daemon/settings_units.hpp"
#include "remote/realm.hpp"
#include "remote/store_address.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <sys/un.h>

namespace terrace {
namespace {

using problems = std::vector<option_problem>;

constexpr size_t sockets_max = 64;
constexpr uint64_t share_bytes_min = 1 * mebibyte;

std::string socket_option(size_t socket, std::string_view key) {
  return "listen[" + std::to_string(socket) + "]." + std::string(key);
}

/// The sockets of each group, in the order in which groups appear.
std::vector<group_options> gather(const std::vector<listen_options>& listen) {
  std::vector<group_options> groups;
  for (size_t i = 0; i < listen.size(); ++i) {
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == listen[i].group; });
    if (found == groups.end()) {
      groups.push_back({.name = listen[i].group});
      found = groups.end() - 1;
      found->isolated = listen[i].isolated;
    }
    found->sockets.push_back(i);
  }
  return groups;
}

/// The share that a group's sockets ask for; any of them may set it.
std::optional<uint64_t> asked_share(const settings& s, const group_options& group,
                                    std::optional<uint64_t> listen_options::*share) {
  for (auto socket : group.sockets)
    if (s.listen[socket].*share)
      return s.listen[socket].*share;
  return std::nullopt;
}

uint64_t round_down(uint64_t value, uint64_t unit) { return value / unit * unit; }

/// Divides a tier: explicit shares first, then equal parts of the rest.
void divide(const settings& s, std::vector<group_options>& groups, uint64_t bytes, uint64_t unit,
            std::optional<uint64_t> listen_options::*share, uint64_t group_options::*target) {
  uint64_t left = bytes;
  std::vector<group_options*> rest;
  for (auto& group : groups) {
    auto asked = asked_share(s, group, share);
    group.*target = asked ? round_down(*asked, unit) : 0;
    left -= std::min(left, asked.value_or(0));
    if (!asked)
      rest.push_back(&group);
  }
  for (group_options* group : rest)
    group->*target = round_down(left / rest.size(), unit);
}

void check_paths(problems& found, const std::vector<listen_options>& listen) {
  for (size_t i = 0; i < listen.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (listen[i].path == listen[j].path) {
        found.push_back({socket_option(i, "path"),
                         "is \"" + listen[i].path + "\", as is that of listen[" + std::to_string(j) + "]",
                         "a different path per socket", "change one of the two paths"});
        break;
      }
}

/// All sockets of a group must have the same options.
void check_alike(problems& found, const settings& s, const group_options& group) {
  auto first = group.sockets.front();
  auto say = [&](size_t socket, std::string_view key, const std::string& value) {
    found.push_back({socket_option(socket, key),
                     "is " + value + ", but listen[" + std::to_string(first) +
                         "] configures the same group '" + group.name + "' differently",
                     "the same " + std::string(key) + " for every socket of a group",
                     "make them equal, or use a different group for this socket"});
  };
  for (auto socket : group.sockets)
    if (s.listen[socket].isolated != group.isolated)
      say(socket, "isolated", s.listen[socket].isolated ? "true" : "false");
  for (auto share : {&listen_options::host_bytes, &listen_options::disk_bytes}) {
    auto asked = asked_share(s, group, share);
    for (auto socket : group.sockets)
      if (const auto& own = s.listen[socket].*share; own && own != asked)
        found.push_back(
            {socket_option(socket, share == &listen_options::host_bytes ? "host_bytes" : "disk_bytes"),
             "is " + format_bytes(*own) + ", but another socket of the group '" + group.name + "' says " +
                 format_bytes(*asked),
             "one share per group", "set it for one socket of the group only"});
  }
}

void check_shares(problems& found, const settings& s, const std::vector<group_options>& groups,
                  std::string_view tier, uint64_t bytes, std::optional<uint64_t> listen_options::*share) {
  auto least = tier == "host" && s.host.huge_pages ? huge_page_bytes : share_bytes_min;
  if (tier == "disk")
    least *= s.disk.path.size();
  uint64_t asked = 0;
  size_t without = 0;
  for (const auto& group : groups) {
    auto own = asked_share(s, group, share);
    auto sum = asked + own.value_or(0);
    asked = sum < asked ? UINT64_MAX : sum;
    without += own ? 0 : 1;
    if (own && *own < least && tier == "disk")
      found.push_back({socket_option(group.sockets.front(), "disk_bytes"), "is " + format_bytes(*own),
                       "at least " + format_bytes(least) + ", " + format_bytes(share_bytes_min) +
                           " per path in disk.path",
                       "raise it"});
  }
  auto option = std::string(tier) + ".bytes";
  if (asked > bytes)
    found.push_back(
        {option, "is " + format_bytes(bytes) + ", but the groups' shares add up to " + format_bytes(asked),
         "at least the sum of the shares",
         "raise it, or lower the " + std::string(tier) + "_bytes of the sockets"});
  else if (without > 0 && (bytes - asked) / without < least)
    found.push_back({option,
                     "is " + format_bytes(bytes) + ", which leaves less than " + format_bytes(least) +
                         " per group without its own share",
                     "at least " + format_bytes(asked + without * least), "raise it"});
}

void append(problems& all, problems more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

} // namespace

problems settings::validate() const {
  problems found;
  if (listen.empty() || listen.size() > sockets_max)
    found.push_back({"listen", "has " + std::to_string(listen.size()) + " sockets",
                     "1 to " + std::to_string(sockets_max), "add or remove [[listen]] sections"});
  for (const option_spec& spec : option_table())
    for (size_t i = 0; i < std::min(sections_of(spec, *this), sockets_max); ++i)
      append(found, check_option(spec, *this, i));
  append(found, contradictions());
  if (listen.size() > sockets_max)
    return found;
  auto all = gather(listen);
  check_paths(found, listen);
  for (const auto& group : all)
    check_alike(found, *this, group);
  if (!all.empty()) {
    check_shares(found, *this, all, "host", host.bytes, &listen_options::host_bytes);
    if (disk.enabled())
      check_shares(found, *this, all, "disk", disk.bytes, &listen_options::disk_bytes);
  }
  append(found, validate_quotas());
  append(found, validate_redis_sockets());
  append(found, validate_remotes());
  if (found.empty())
    append(found, validate_shares());
  return found;
}

problems settings::contradictions() const {
  constexpr uint32_t lease_percent_with_disk =
      30; // 25 % are left for loads from it, so that 25 would be none
  problems found;
  for (size_t i = 0; i < std::min(listen.size(), sockets_max); ++i) {
    auto own = listen[i].contradictions();
    for (auto& problem : own)
      problem.option = socket_option(i, std::string_view(problem.option).substr(sizeof "listen." - 1));
    append(found, std::move(own));
    if (const auto& share = listen[i].host_bytes; share && host.huge_pages && *share % huge_page_bytes != 0)
      found.push_back({socket_option(i, "host_bytes"), "is " + format_bytes(*share),
                       "a multiple of 2MiB, since "
                       "host.huge_pages is true",
                       "round it"});
  }
  append(found, host.contradictions());
  append(found, disk.contradictions());
  append(found, shadow.contradictions());
  append(found, gpu.contradictions());
  append(found, metrics.contradictions());
  if ((disk.enabled() || gpu.tier_bytes != 0) && lease.host_percent != 0 &&
      lease.host_percent < lease_percent_with_disk)
    found.push_back(
        {"lease.host_percent", "is " + std::to_string(lease.host_percent),
         "30 to 100 with a disk or a GPU tier, because new leases leave 25 % of host memory for loads "
         "from it",
         "raise it"});
  if (host.staging_only && !disk.enabled())
    found.push_back({"host.staging_only", "is true", "disk.bytes with it: nothing stays in host memory",
                     "give the disk bytes, or let host memory keep objects"});
  if (host.staging_only && disk.enabled() && disk.demotion != "write_through" &&
      disk.demotion != "write_back")
    found.push_back(
        {"host.staging_only", "is true",
         "disk.demotion = \"write_through\" or \"write_back\" with it, not \"" + disk.demotion + "\"",
         "change one of them: nothing stays in host memory until its second use"});
  return found;
}

std::vector<group_options> settings::groups() const {
  auto all = gather(listen);
  divide(*this, all, host.bytes, host.huge_pages ? huge_page_bytes : 4 * kibibyte,
         &listen_options::host_bytes, &group_options::host_bytes);
  const auto& directories = disk.path;
  if (disk.enabled())
    divide(*this, all, disk.bytes, 4 * kibibyte * directories.size(), &listen_options::disk_bytes,
           &group_options::disk_bytes);
  for (auto& group : all)
    for (const std::string& directory : directories)
      group.disk_files.push_back(
          directory + (group.name == "default" ? "/terrace.extents" : "/terrace-" + group.name + ".extents"));
  return all;
}

// [[resp]]: sockets for Redis clients.

namespace {

using problems = std::vector<option_problem>;

constexpr size_t redis_sockets_max = 64;

std::string redis_option(size_t redis, std::string_view key) {
  return "resp[" + std::to_string(redis) + "]." + std::string(key);
}

bool is_whole_path(const std::string& path) {
  return path.starts_with('/') && path.find('\0') == std::string::npos;
}

} // namespace

problems redis_options::contradictions() const {
  problems found;
  constexpr size_t path_max = sizeof(sockaddr_un::sun_path) - 1;
  if (at_path() ? !is_whole_path(address) || address.size() > path_max : !parse_loopback_address(address)) {
    auto why = at_path() ? "" : ": " + parse_loopback_address(address).error().text;
    found.push_back({"resp.address", address.empty() ? "is missing" : "is \"" + address + "\"",
                     "the absolute path of a Unix socket, of at most " + std::to_string(path_max) +
                         " bytes, or a loopback address with a port" + why,
                     "write \"/run/terrace/resp.sock\" or \"127.0.0.1:6379\": values cross no network; other "
                     "machines need a proxy of their own"});
  } else if (!at_path()) {
    if (password_file.empty())
      found.push_back({"resp.password_file", "is missing",
                       "one with a port, because every user of this machine can connect to it",
                       "name a file with the password, or use a Unix socket, where permissions decide"});
    if (!uids.empty() || !gids.empty())
      found.push_back({"resp.uids", "is given with a port", "none: only a Unix socket tells who connects",
                       "remove uids and gids, or use a Unix socket"});
  }
  if (!password_file.empty() && !is_whole_path(password_file))
    found.push_back(
        {"resp.password_file", "is \"" + password_file + "\"", "an absolute path", "begin it with '/'"});
  return found;
}

problems settings::validate_redis_sockets() const {
  problems found;
  if (resp.size() > redis_sockets_max)
    found.push_back({"resp", "has " + std::to_string(resp.size()) + " sections",
                     "at most " + std::to_string(redis_sockets_max), "remove some"});
  for (size_t i = 0; i < resp.size() && i < redis_sockets_max; ++i) {
    for (option_problem& problem : resp[i].contradictions()) {
      problem.option = redis_option(i, std::string_view(problem.option).substr(sizeof "resp." - 1));
      found.push_back(std::move(problem));
    }
    const redis_options& redis = resp[i];
    if (std::none_of(listen.begin(), listen.end(), [&](const auto& l) { return l.group == redis.group; }))
      found.push_back({redis_option(i, "group"), "is \"" + redis.group + "\", which no socket has",
                       "the group of a [[listen]]", "correct it, or add the [[listen]]"});
    auto same = [&](const std::string& path) { return redis.at_path() && path == redis.address; };
    if (std::any_of(listen.begin(), listen.end(), [&](const auto& other) { return same(other.path); }) ||
        std::any_of(resp.begin(), resp.begin() + static_cast<ptrdiff_t>(i),
                    [&](const auto& other) { return same(other.address); }))
      found.push_back({redis_option(i, "address"),
                       "is \"" + redis.address + "\", as is that of another socket",
                       "a different path per socket", "change one of the two paths"});
  }
  return found;
}

// [[remote]]: remote tiers.

namespace {

/// Logs and terminals get no password that somebody has written into an address.
std::string without_password(const std::string& address) {
  const auto at = address.find('@'), scheme = address.find("://");
  const auto begin = scheme < at ? scheme + 3 : 0;
  return at == std::string::npos ? address : address.substr(0, begin) + "..." + address.substr(at);
}

} // namespace

problems remote_options::contradictions() const {
  problems found;
  if (auto parsed = remote::parse_store_address(address); !parsed)
    found.push_back({"remote.address",
                     address.empty() ? "is missing" : "is \"" + without_password(address) + "\"",
                     parsed.error().expected, parsed.error().fix});
  const auto where = remote::parse_store_address(address);
  const std::pair<const char*, const std::string*> passwords[] = {
      {"remote.password_file", &password_file}, {"remote.sentinel_password_file", &sentinel_password_file}};
  for (const auto& [option, value] : passwords)
    if (!value->empty() && !is_whole_path(*value))
      found.push_back({option, "is \"" + *value + "\"", "an absolute path", "begin it with '/'"});
  if (!sentinel_password_file.empty() && where && where->at != remote::store_address::kind::sentinels)
    found.push_back({"remote.sentinel_password_file",
                     "is \"" + sentinel_password_file + "\", but the address names no sentinels",
                     "an address that begins with sentinel:// or sentinel+tls://", "remove the option"});
  if (!password_file.empty() && where && where->at == remote::store_address::kind::plugin)
    found.push_back(
        {"remote.password_file", "is \"" + password_file + "\", but the address names a plugin",
         "a server or a bucket that asks for a password",
         "remove the option; name a file with the secret by an option of the plugin, behind '?' in address"});
  if (compress && where && where->at == remote::store_address::kind::plugin)
    found.push_back({"remote.compress", "is true, but the address names a plugin",
                     "a server or a bucket: a plugin's values have the length that they are asked for with",
                     "remove the option; let the plugin compress what it keeps"});
  const std::pair<const char*, const std::string*> of_tls[] = {{"remote.tls_ca_file", &tls_ca_file},
                                                               {"remote.tls_client_file", &tls_client_file}};
  for (const auto& [option, value] : of_tls) {
    if (value->empty())
      continue;
    if (!is_whole_path(*value))
      found.push_back({option, "is \"" + *value + "\"", "an absolute path", "begin it with '/'"});
    if (!where || !where->tls)
      found.push_back({option, "is \"" + *value + "\", but the address asks for no TLS",
                       "an address that begins with rediss://, sentinel+tls://, cluster+tls:// or s3+tls://",
                       where && where->at == remote::store_address::kind::bucket
                           ? "write s3+tls:// in front of the address, or remove the option"
                           : "write rediss:// in front of the address, or remove the option"});
  }
  if (realm_key_file.empty())
    found.push_back({"remote.realm_key_file",
                     encrypt ? "is missing, and `encrypt` derives its keys from it" : "is missing",
                     "the file with the key that the machines share",
                     "make one with `head -c 32 /dev/urandom > FILE` and name its absolute path"});
  else if (!is_whole_path(realm_key_file))
    found.push_back(
        {"remote.realm_key_file", "is \"" + realm_key_file + "\"", "an absolute path", "begin it with '/'"});
  if (auto rates = parse_write_rates(write_budget); !rates) {
    std::string wrong = rates.error().text;
    const std::string meant = take_suggestion(wrong);
    found.push_back({"remote.write_budget", "is \"" + write_budget + "\", which " + wrong,
                     "a size for each second, a day, or both",
                     meant.empty() ? "write \"200MiB/s\", \"2TiB/day\" or \"200MiB/s, 2TiB/day\""
                                   : "write \"" + meant + "\""});
  }
  if (!remote::is_prefix(prefix))
    found.push_back({"remote.prefix", "is \"" + prefix + "\"",
                     "at most 64 letters, digits, '.', '_', '-' and '/'",
                     "shorten it, or leave out the others"});
  return found;
}

problems settings::validate_remotes() const {
  problems found;
  for (size_t i = 0; i < std::min(remote.size(), sockets_max); ++i) {
    auto option = [i](std::string_view key) {
      return "remote[" + std::to_string(i) + "]." + std::string(key);
    };
    for (option_problem& problem : remote[i].contradictions()) {
      problem.option = option(std::string_view(problem.option).substr(sizeof "remote." - 1));
      found.push_back(std::move(problem));
    }
    const std::string& group = remote[i].group;
    auto of_group = [&group](const auto& other) { return other.group == group; };
    auto socket = std::find_if(listen.begin(), listen.end(), of_group);
    if (socket == listen.end())
      found.push_back({option("group"), "is \"" + group + "\", which no socket has",
                       "the group of a [[listen]]", "correct it, or add the [[listen]]"});
    else if (socket->isolated && !remote[i].encrypt)
      found.push_back({option("group"), "is \"" + group + "\", which is isolated",
                       "`encrypt = true` for such a group: its bytes would be readable in the store",
                       "add `encrypt = true` to the section, or remove `isolated` from the group's sockets"});
    const auto before = std::span(remote).first(i);
    if (std::ranges::count_if(before, of_group) == static_cast<ptrdiff_t>(remote_tiers.size()))
      found.push_back({option("group"), "is \"" + group + "\", as are those of three others",
                       "at most three [[remote]] sections for a group", "remove one of them"});
    // The files in the state directory name a store by its prefix.
    if (std::ranges::any_of(before, [&](const remote_options& other) {
          return other.group == group && other.prefix == remote[i].prefix;
        }))
      found.push_back(
          {option("prefix"),
           "is \"" + remote[i].prefix + "\", as is that of another [[remote]] of group \"" + group + "\"",
           "a prefix of its own for each store of a group", "give one of the two another prefix"});
  }
  if (remote.size() > sockets_max)
    found.push_back({"remote", "has " + std::to_string(remote.size()) + " sections",
                     "at most " + std::to_string(sockets_max), "remove some"});
  return found;
}

} // namespace terrace
