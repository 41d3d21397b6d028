#include "tests/support/redis_process.hpp"

#include "tests/support/programs.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace terrace::test {

std::string redis_process::program() {
  const char* named = std::getenv("TERRACE_STORE_SERVER");
  return named != nullptr ? named : "redis-server";
}

bool redis_process::installed() { return run({program(), "--version"}).exit_code == 0; }

redis_process::redis_process(const std::string& folder, const std::vector<std::string>& options)
    : path_(folder + "/redis.sock") {
  std::vector<std::string> words = {program(), "--port",       "0",  "--unixsocket", path_, "--save",
                                    "",        "--appendonly", "no", "--dir",        folder};
  words.insert(words.end(), options.begin(), options.end());
  start(std::move(words), "eady to accept connections");
}

redis_process redis_process::sentinel(const std::string& folder, uint16_t port, const std::string& name,
                                      uint16_t primary, const std::string& more) {
  const std::string file = folder + "/sentinel.conf";
  std::ofstream(file) << "bind 127.0.0.1\nprotected-mode no\nport " << port << "\ndir " << folder
                      << "\nsentinel monitor " << name << " 127.0.0.1 " << primary
                      << " 1\nsentinel down-after-milliseconds " << name << " 300\nsentinel failover-timeout "
                      << name << " 2000\n"
                      << more;
  return {started{}, {program(), file, "--sentinel"}, "Sentinel ID is"};
}

void redis_process::start(std::vector<std::string> words, const std::string& until) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2 failed");
  output_.reset(pipe[0]);
  unique_fd theirs(pipe[1]);
  ::fcntl(theirs.get(), F_SETFL,
          O_NONBLOCK); // a replica that connects again and again would wait for a reader
  pid_ = start_program(words, [&] {
    ::dup2(theirs.get(), STDOUT_FILENO);
    ::dup2(theirs.get(), STDERR_FILENO);
  });
  theirs.reset();
  std::string printed;
  while (printed.find(until) == std::string::npos) {
    char part[4096];
    ssize_t count = ::read(output_.get(), part, sizeof part);
    if (count <= 0) {
      reap(pid_);
      throw std::runtime_error(program() + " does not start: " + printed);
    }
    printed.append(part, static_cast<size_t>(count));
  }
}

redis_process::~redis_process() {
  ::kill(pid_, SIGKILL);
  reap(pid_);
}

unique_fd redis_process::connect() const {
  unique_fd to(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path)
    throw std::runtime_error("the path of the socket is too long: " + path_);
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  if (::connect(to.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error(program() + " does not listen at " + path_);
  return to;
}

} // namespace terrace::test
