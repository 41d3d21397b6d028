#include "daemon/notify.hpp"

#include "base/unique_fd.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace terrace {
namespace {

/// A manager's end: a datagram socket bound to `name`, where a leading @ stands for the abstract name space.
class manager {
 public:
  explicit manager(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@')
      address.sun_path[0] = '\0';
    auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length), 0) << name;
  }

  std::string receive() {
    char text[256];
    ssize_t n = ::recv(socket_.get(), text, sizeof text, 0);
    return n < 0 ? "" : std::string(text, static_cast<size_t>(n));
  }

 private:
  unique_fd socket_;
};

TEST(Notify, ReachesAManagerAtAPath) {
  std::string path = "/tmp/terrace-notify-" + std::to_string(::getpid());
  manager listening(path);
  service_notifier(path).send("READY=1");
  EXPECT_EQ(listening.receive(), "READY=1");
  ::unlink(path.c_str());
}

TEST(Notify, ReachesAManagerAtAnAbstractName) {
  std::string name = "@terrace-notify-" + std::to_string(::getpid());
  manager listening(name);
  service_notifier notifier(name);
  notifier.send("READY=1");
  notifier.send("WATCHDOG=1");
  EXPECT_EQ(listening.receive(), "READY=1");
  EXPECT_EQ(listening.receive(), "WATCHDOG=1");
}

TEST(Notify, IsSilentWithoutAManager) {
  service_notifier("").send("READY=1");
  service_notifier("/nowhere/at/all").send("READY=1");
  service_notifier(std::string(500, 'x')).send("READY=1");
}

} // namespace
} // namespace terrace
