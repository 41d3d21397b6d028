#include "metrics/port_holder.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace terrace::metrics {

namespace fs = std::filesystem;

namespace {

constexpr const char* listening = "0A"; // TCP_LISTEN in /proc/net/tcp

/// Adds the inodes of the sockets in a table of the kernel that listen on the port, each as /proc/PID/fd shows it.
void add_listeners(const char* table, uint16_t port, std::string& sockets) {
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line); // skips the header
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
          inode))
      continue;
    size_t colon = local.rfind(':');
    if (state == listening && colon != std::string::npos &&
        std::stoul(local.substr(colon + 1), nullptr, 16) == port)
      sockets += "socket:[" + inode + "]\n";
  }
}

bool has_one_of(const fs::path& process, const std::string& sockets) {
  std::error_code failed;
  for (fs::directory_iterator fd(process / "fd", failed), end; !failed && fd != end; fd.increment(failed)) {
    std::error_code unreadable;
    auto target = fs::read_symlink(fd->path(), unreadable).string();
    if (!unreadable && target.starts_with("socket:[") && sockets.find(target + "\n") != std::string::npos)
      return true;
  }
  return false;
}

} // namespace

std::string port_holder(const loopback_address& at) {
  std::string sockets;
  add_listeners("/proc/net/tcp", at.port, sockets);
  add_listeners("/proc/net/tcp6", at.port, sockets);
  if (at.port == 0 || sockets.empty())
    return {};
  std::error_code failed;
  for (fs::directory_iterator process("/proc", failed), end; !failed && process != end;
       process.increment(failed)) {
    std::string number = process->path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos || !has_one_of(process->path(), sockets))
      continue;
    std::string name;
    std::getline(std::ifstream(process->path() / "comm"), name);
    return "process " + number + " (" + name + ")";
  }
  return "another process";
}

} // namespace terrace::metrics
