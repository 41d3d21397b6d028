#include "daemon/settings_machine.hpp"

#include "base/mapping.hpp"
#include "metrics/http_server.hpp"
#include "remote/store_address.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

namespace terrace {

namespace fs = std::filesystem;

namespace {

bool is_same(const std::string& one, const std::string& other) {
  std::error_code failed;
  if (fs::equivalent(one, other, failed) && !failed)
    return true;
  // Directories that do not exist have no identity, but their existing parents have.
  auto name = fs::weakly_canonical(one, failed);
  return !failed && name == fs::weakly_canonical(other, failed) && !failed;
}

} // namespace

std::vector<option_problem> repeated_directories(const settings& with) {
  std::vector<option_problem> found;
  if (!with.disk.enabled())
    return found;
  const auto& paths = with.disk.path;
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    auto same =
        std::find_if(paths.begin(), path, [&](const std::string& other) { return is_same(*path, other); });
    if (same != path && *same != *path) // equal names are found without the file system
      found.push_back({"disk.path", "names one directory twice, as \"" + *same + "\" and \"" + *path + "\"",
                       "another directory for each path", "remove one of them"});
  }
  return found;
}

std::vector<option_problem> missing_directories(const settings& with, const std::string& default_path) {
  std::vector<option_problem> found;
  if (!with.disk.enabled())
    return found;
  for (const std::string& path : with.disk.path) {
    std::error_code failed;
    auto status = fs::status(path, failed);
    if (status.type() == fs::file_type::not_found && path != default_path)
      found.push_back({"disk.path", "names \"" + path + "\", which does not exist", "an existing directory",
                       "mount its device, or make the directory; the daemon does not make it"});
    else if (fs::exists(status) && !fs::is_directory(status))
      found.push_back({"disk.path", "names \"" + path + "\", which is not a directory",
                       "an existing directory", "name the directory of the file"});
  }
  return found;
}

void make_default_directories(const settings& with, const std::string& default_path,
                              const std::string& default_socket) {
  std::error_code ignored;
  if (with.disk.enabled() && with.disk.path == std::vector{default_path})
    fs::create_directories(default_path, ignored);
  for (const listen_options& listen : with.listen)
    if (auto folder = fs::path(listen.path).parent_path();
        listen.path == default_socket && fs::create_directories(folder, ignored))
      ::chmod(folder.c_str(), 0755); // the mode of the socket itself decides who connects
}

namespace {

struct named_socket {
  std::string option; ///< "listen.path"
  std::string path;
};

std::vector<named_socket> sockets_of(const settings& with) {
  std::vector<named_socket> sockets;
  for (const listen_options& listen : with.listen)
    sockets.push_back({"listen.path", listen.path});
  for (const redis_options& redis : with.resp)
    if (redis.at_path())
      sockets.push_back({"resp.address", redis.address});
  return sockets;
}

void check_folder(const named_socket& socket, std::vector<option_problem>& found) {
  std::string folder = fs::path(socket.path).parent_path().string();
  std::error_code failed;
  auto status = fs::status(folder, failed);
  if (fs::is_directory(status) || status.type() == fs::file_type::none)
    return; // one that cannot be looked at is reported by the start
  bool missing = status.type() == fs::file_type::not_found && failed != std::errc::not_a_directory;
  found.push_back(
      {socket.option,
       "is \"" + socket.path + "\", whose folder " +
           (missing ? "does not exist" : "is a file, which is not a directory"),
       "a path in an existing directory",
       missing ? "make it: mkdir -p " + folder + "; the daemon does not make it" : "choose another path"});
}

void check_numa_node(const std::string& node, std::vector<option_problem>& found) {
  auto nodes = numa_nodes();
  if (node == "any" ||
      std::any_of(nodes.begin(), nodes.end(), [&](uint32_t one) { return node == std::to_string(one); }))
    return;
  std::string known;
  for (uint32_t one : nodes)
    known += (known.empty() ? "" : ", ") + std::to_string(one);
  found.push_back({"host.numa_node", "is \"" + node + "\"", "a node of this machine with memory: " + known,
                   "write one of them, or \"any\""});
}

} // namespace

std::vector<option_problem> machine_problems(const settings& with, const std::string& default_socket) {
  std::vector<option_problem> found;
  auto sockets = sockets_of(with);
  for (auto socket = sockets.begin(); socket != sockets.end(); ++socket) {
    if (socket->path != default_socket)
      check_folder(*socket, found);
    auto same = std::find_if(sockets.begin(), socket,
                             [&](const auto& other) { return is_same(other.path, socket->path); });
    if (same != socket)
      found.push_back({socket->option,
                       "is \"" + socket->path + "\", which also names the socket \"" + same->path + "\"",
                       "another path for each socket", "remove or change one of them"});
  }
  check_numa_node(with.host.numa_node, found);
  for (const redis_options& redis : with.resp)
    if (!redis.password_file.empty())
      if (auto password = read_password(redis.password_file, "password_file of [[resp]]"); !password)
        found.push_back(
            {"resp.password_file", "is not usable: " + password.error().text,
             "a plain file that only the daemon's user reads, with the password in its first line",
             "write it, and set its mode to 0600"});
  for (const remote_options& remote : with.remote) {
    if (auto realm = read_realm(remote); !realm)
      found.push_back({"remote.realm_key_file", "is not usable: " + realm.error().text,
                       "a plain file that only the daemon's user reads, with 32 to 1024 random bytes",
                       "make one with `head -c 32 /dev/urandom > FILE`, and set its mode to 0600"});
    const std::pair<std::string, std::string> passwords[] = {
        {"password_file", remote.password_file}, {"sentinel_password_file", remote.sentinel_password_file}};
    for (const auto& [option, file] : passwords)
      if (!file.empty())
        if (auto password = login_of(remote, file, option); !password)
          found.push_back({"remote." + option, "is not usable: " + password.error().text,
                           "a plain file that only the daemon's user reads, with the password in its first "
                           "line and, for a "
                           "bucket, the access key in its second one",
                           "write it, and set its mode to 0600"});
    if (auto tls = read_tls(remote); !tls)
      found.push_back(
          {"remote.address", "asks for TLS, and a file for it is not usable: " + tls.error().text,
           "files in PEM: tls_ca_file with certificates, tls_client_file with a certificate and its key, "
           "which not every user reads",
           "correct the file, or leave the option out"});
  }
  if (with.metrics.enabled() && !with.metrics.token_file.empty())
    if (auto token = read_password(with.metrics.token_file, "metrics.token_file"); !token)
      found.push_back({"metrics.token_file", "is not usable: " + token.error().text,
                       "a plain file that only the daemon's user reads, with the token in its first line",
                       "write it, and set its mode to 0600"});
  if (with.metrics.enabled() && !with.metrics.tls_file.empty())
    if (auto tls = check_metrics_tls(with.metrics.tls_file); !tls)
      found.push_back({"metrics.tls_file", "is not usable: " + tls.error().text,
                       "a file in PEM with a certificate and its private key, which not every user reads",
                       "correct the file, or leave the option out"});
  return found;
}

constexpr size_t password_bytes_max = 1024;

namespace {

/// Opens a file of a secret. `name` is shown in errors.
result<std::ifstream> open_secret(const std::string& file, const std::string& name) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0)
    return fail(errc::bad_request, name + " cannot be read: " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) // opening a fifo would wait for its writer
    return fail(errc::bad_request, name + " is not a plain file");
  if ((status.st_mode & S_IRWXO) != 0)
    return fail(errc::bad_request, name + " is open to every user: chmod o= " + file);
  return std::ifstream(file, std::ios::binary);
}

} // namespace

namespace {

/// The first lines of a file with a password. `option` names it. Error: the first one is no password.
result<std::array<std::string, 2>> read_lines(const std::string& file, const std::string& option) {
  const std::string name = file + " (" + option + ")";
  auto from = open_secret(file, name);
  if (!from)
    return tl::unexpected(from.error());
  std::array<std::string, 2> lines;
  for (std::string& line : lines) {
    std::getline(*from, line);
    if (line.ends_with('\r'))
      line.pop_back();
  }
  if (lines[0].empty() || lines[0].size() > password_bytes_max || lines[1].size() > password_bytes_max)
    return fail(errc::bad_request, name + ": expected a password of 1 to " +
                                       std::to_string(password_bytes_max) + " bytes in its first line");
  return lines;
}

} // namespace

result<std::string> read_password(const std::string& file, const std::string& option) {
  auto lines = read_lines(file, option);
  if (!lines)
    return tl::unexpected(lines.error());
  return std::move((*lines)[0]);
}

result<remote::store_login> read_login(const std::string& file, const std::string& option) {
  auto lines = read_lines(file, option + " of [[remote]]");
  if (!lines)
    return tl::unexpected(lines.error());
  return remote::store_login{.user = std::move((*lines)[1]), .password = std::move((*lines)[0])};
}

result<remote::store_login> login_of(const remote_options& remote, const std::string& file,
                                     const std::string& option) {
  auto login = read_login(file, option);
  const auto address = remote::parse_store_address(remote.address);
  const bool is_bucket = address && address->at == remote::store_address::kind::bucket;
  if (login && is_bucket && login->user.empty())
    return fail(errc::bad_request,
                file + " (" + option +
                    " of [[remote]]): expected the access key in its second line, behind the secret key");
  return login;
}

result<void> check_metrics_tls(const std::string& file) {
  if (auto opened = open_secret(file, file + " (metrics.tls_file)"); !opened)
    return tl::unexpected(opened.error());
  return metrics::check_tls_file(file);
}

result<remote::tls_keys_ptr> read_tls(const remote_options& remote) {
  const auto address = remote::parse_store_address(remote.address);
  if (!address || !address->tls)
    return nullptr;
  if (!remote.tls_client_file.empty())
    if (auto opened =
            open_secret(remote.tls_client_file, remote.tls_client_file + " (tls_client_file of [[remote]])");
        !opened)
      return tl::unexpected(opened.error());
  return remote::tls_keys::make(
      {.ca_file = remote.tls_ca_file, .client_file = remote.tls_client_file, .name = address->name});
}

result<remote::store_credentials> read_credentials(const remote_options& remote) {
  remote::store_credentials made;
  const std::tuple<const char*, const std::string*, remote::store_login*> logins[] = {
      {"password_file", &remote.password_file, &made.login},
      {"sentinel_password_file", &remote.sentinel_password_file, &made.of_sentinels}};
  for (const auto& [option, file, into] : logins) {
    if (file->empty())
      continue;
    auto login = login_of(remote, *file, option);
    if (!login)
      return tl::unexpected(login.error());
    *into = std::move(*login);
  }
  auto tls = read_tls(remote);
  if (!tls)
    return tl::unexpected(tls.error());
  made.tls = std::move(*tls);
  return made;
}

result<remote::realm> read_realm(const remote_options& remote) {
  const std::string& file = remote.realm_key_file;
  const std::string name = file + " (realm_key_file of [[remote]])";
  auto from = open_secret(file, name);
  if (!from)
    return tl::unexpected(from.error());
  std::array<char, remote::realm::key_bytes_max + 1> key;
  from->read(key.data(), key.size());
  auto made = remote::realm::make(
      remote.prefix, {reinterpret_cast<const uint8_t*>(key.data()), static_cast<size_t>(from->gcount())},
      remote.encrypt);
  if (!made)
    return fail(errc::bad_request, name + ": " + made.error().text);
  return made;
}

} // namespace terrace
