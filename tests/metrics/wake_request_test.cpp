#include "metrics/http_server.hpp"

#include "base/unique_fd.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace terrace::metrics {
namespace {

/// A socket that listens on a free port of 127.0.0.1, and never accepts.
struct silent_server {
  silent_server() : listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    EXPECT_EQ(bind(listening.get(), reinterpret_cast<sockaddr*>(&at), length), 0);
    EXPECT_EQ(listen(listening.get(), 8), 0);
    EXPECT_EQ(getsockname(listening.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
    address = {"127.0.0.1", ntohs(at.sin_port)};
  }
  unique_fd listening;
  numeric_address address;
};

TEST(WakeRequest, IsOverWhenNobodyListens) {
  silent_server server;
  server.listening.reset();
  unique_fd stopped(eventfd(0, EFD_CLOEXEC));
  EXPECT_FALSE(wake_request(server.address, stopped.get()));
}

TEST(WakeRequest, IsOverWhenTheServerHasStoppedWithoutAnAnswer) {
  silent_server server;
  unique_fd stopped(eventfd(1, EFD_CLOEXEC));
  EXPECT_FALSE(wake_request(server.address, stopped.get()));
}

} // namespace
} // namespace terrace::metrics
