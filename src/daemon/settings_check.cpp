#include "daemon/settings_check.hpp"

#include "base/numeric_address.hpp"
#include "base/unique_fd.hpp"
#include "daemon/settings_machine.hpp"
#include "metrics/http_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace terrace {

namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

/// The name of a process; empty if it has ended.
std::string process_name(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

/// The kernel closes a ring after the end of its process, so a killed daemon's socket accepts connections for a moment.
bool process_has_ended(pid_t pid) {
  unique_fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process)
    return errno == ESRCH;
  pollfd ended{process.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

class machine_check {
 public:
  explicit machine_check(machine_findings& into) : into_(into) {}

  /// A path that is too long was refused before.
  void socket(const std::string& option, const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      if (errno != ENOENT)
        cannot_enter(option, path, errno);
      else
        folder(option, path);
    } else if (!S_ISSOCK(status.st_mode)) {
      into_.failures.push_back({option,
                                "is " + quoted(path) + ", which exists and is " +
                                    (S_ISDIR(status.st_mode) ? "a folder" : "not a socket"),
                                "the path of a socket, or one where nothing is",
                                "choose another path; the daemon removes nothing that is not a socket"});
    } else {
      listener(option, path);
    }
  }

  void redis_port(const std::string& address) {
    if (auto holder = taken(address); !holder.empty())
      into_.failures.push_back({"resp.address", "is " + quoted(address) + ", and " + holder,
                                "a port that no other process has", "stop it, or choose another port"});
  }

  void metrics_port(const std::string& address) {
    if (auto holder = taken(address); !holder.empty())
      into_.warnings.push_back(
          {"metrics.address",
           "is " + quoted(address) + ", and " + holder + ", so that the daemon serves without metrics",
           "a port that no other process has", "stop it, or choose another port"});
  }

 private:
  void cannot_enter(const std::string& option, const std::string& path, int why) {
    into_.failures.push_back(
        {option,
         "is " + quoted(path) + ", in whose folder this user can make no socket: " + std::strerror(why),
         "a path in a folder that the daemon's user may write to",
         "check as the daemon's user, give it the folder, or choose another path"});
  }

  /// One that does not exist is reported by `machine_problems`, or made by the daemon.
  void folder(const std::string& option, const std::string& path) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0 && errno != ENOENT &&
        errno != ENOTDIR)
      cannot_enter(option, path, errno);
  }

  void listener(const std::string& option, const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), std::min(path.size() + 1, sizeof address.sun_path));
    unique_fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      if (errno == EAGAIN)
        somebody_listens(option, path, "a process");
      else if (errno != ECONNREFUSED)
        into_.failures.push_back(
            {option,
             "is " + quoted(path) + ", a socket that this user may not look at: " + std::strerror(errno),
             "a socket of the daemon's user", "check as the daemon's user"});
      else
        folder(option, path); // nobody listens: the daemon replaces it
      return;
    }
    ucred who{};
    socklen_t length = sizeof who;
    if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.pid > 0) {
      if (process_has_ended(who.pid))
        return folder(option, path);
      const std::string name = process_name(who.pid);
      if (name == "terraced") {
        daemon_ = who.pid;
        into_.warnings.push_back(
            {option,
             "is " + quoted(path) + ", where a daemon listens (process " + std::to_string(who.pid) + ")",
             "one daemon for a socket",
             "a reload (SIGHUP) or a restart of that daemon; another one cannot start with this file"});
        return;
      }
      return somebody_listens(option, path,
                              "process " + std::to_string(who.pid) + (name.empty() ? "" : " (" + name + ")"));
    }
    somebody_listens(option, path, "a process");
  }

  void somebody_listens(const std::string& option, const std::string& path, const std::string& who) {
    into_.failures.push_back({option, "is " + quoted(path) + ", where " + who + " listens",
                              "a path that no other process has", "stop it, or choose another path"});
  }

  /// Why the port cannot be had; empty if it can, or if the daemon of the settings has it.
  std::string taken(const std::string& text) const {
    auto at = parse_numeric_address(text); // validated
    if (!at)
      return {};
    sockaddr_storage address{};
    socklen_t length = sizeof(sockaddr_in);
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    if (::inet_pton(AF_INET, at->host.c_str(), &v4->sin_addr) == 1) {
      v4->sin_family = AF_INET;
      v4->sin_port = htons(at->port);
    } else if (::inet_pton(AF_INET6, at->host.c_str(), &v6->sin6_addr) == 1) {
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(at->port);
      length = sizeof(sockaddr_in6);
    }
    unique_fd socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int one = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0)
      return {};
    if (errno != EADDRINUSE)
      return std::string("this machine cannot listen there: ") + std::strerror(errno);
    const std::string holder = metrics::port_holder(*at);
    if (daemon_ != 0 && (holder.empty() || holder == "another process" ||
                         holder.starts_with("process " + std::to_string(daemon_) + " ")))
      return {};
    return (holder.empty() ? "another process" : holder) + " listens there";
  }

  machine_findings& into_;
  pid_t daemon_ = 0; ///< listens at a socket of the settings
};

} // namespace

machine_findings check_machine(const settings& with, const std::string& default_directory,
                               const std::string& default_socket) {
  machine_findings found;
  found.failures = machine_problems(with, default_socket);
  machine_check check(found);
  for (const listen_options& listen : with.listen)
    check.socket("listen.path", listen.path);
  for (const redis_options& redis : with.resp) {
    if (redis.at_path())
      check.socket("resp.address", redis.address);
    else
      check.redis_port(redis.address);
  }
  if (with.metrics.enabled())
    check.metrics_port(with.metrics.address);
  auto missing = missing_directories(with, default_directory);
  for (option_problem& problem : missing) {
    problem.wrong += missing.size() == with.disk.path.size() ? "; the daemon starts with the disk tier off"
                                                             : "; the daemon starts without this path";
    found.warnings.push_back(std::move(problem));
  }
  return found;
}

void leave_out(machine_findings& found, const std::vector<std::string>& wrong) {
  const auto is_wrong = [&](const option_problem& problem) {
    return std::any_of(wrong.begin(), wrong.end(), [&](const std::string& name) {
      return problem.option == name || problem.option.starts_with(name + ".");
    });
  };
  std::erase_if(found.failures, is_wrong);
  std::erase_if(found.warnings, is_wrong);
}

std::string findings_report(const machine_findings& findings) {
  std::string text;
  for (const option_problem& one : findings.failures)
    text += "failure\t" + one.option + " " + one.wrong + "\t" + one.fix + "\n";
  for (const option_problem& one : findings.warnings)
    text += "warning\t" + one.option + " " + one.wrong + "\t" + one.fix + "\n";
  return text;
}

std::string needs_report(const settings& with, const machine_findings& findings,
                         const std::string& default_directory, const std::string& default_socket) {
  std::string text = findings_report(findings);
  auto line = [&](const char* key, const std::string& value) {
    text += std::string(key) + "\t" + value + "\n";
  };
  for (const listen_options& listen : with.listen) {
    line("socket", listen.path);
    if (listen.path == default_socket)
      line("makes", std::filesystem::path(listen.path).parent_path().string());
  }
  for (const redis_options& redis : with.resp)
    if (redis.at_path())
      line("socket", redis.address);
  if (with.disk.enabled()) {
    for (const std::string& path : with.disk.path)
      line("disk", path);
    if (with.disk.path == std::vector{default_directory})
      line("makes", default_directory);
    line("disk_bytes", std::to_string(with.disk.bytes));
  }
  line("host_bytes", std::to_string(with.host.bytes));
  if (with.metrics.enabled())
    line("metrics", with.metrics.address);
  return text;
}

} // namespace terrace
