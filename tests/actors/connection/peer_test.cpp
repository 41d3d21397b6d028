#include "actors/connection/frame_channel.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

using namespace terrace;

namespace {

struct Peer : ::testing::Test {
  unique_fd here, there;

  Peer() {
    std::array<int, 2> both{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()), 0);
    here = unique_fd(both[0]);
    there = unique_fd(both[1]);
  }
};

} // namespace

TEST_F(Peer, IsTheProcessThatConnected) {
  auto who = identify_peer(here.get());
  ASSERT_TRUE(who);
  EXPECT_EQ(who->pid, ::getpid());
  EXPECT_EQ(who->uid, ::getuid());
  EXPECT_EQ(who->gid, ::getgid());
  EXPECT_GE(who->pidfd->get(), 0);
}

TEST_F(Peer, NothingButASocketHasOne) { EXPECT_FALSE(identify_peer(-1)); }

TEST_F(Peer, IsToldWhyItIsTurnedAway) {
  turn_away(here, {errc::busy, "as many connections as allowed"});
  std::array<char, 4096> bytes{};
  ssize_t n = ::recv(there.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  ASSERT_GT(n, 0);
  EXPECT_NE(std::string(bytes.data(), static_cast<size_t>(n)).find("as many connections as allowed"),
            std::string::npos);
}

TEST_F(Peer, ThatHasGoneIsTurnedAwayWithoutASignal) {
  there = {};
  turn_away(here, {errc::busy, "busy"});
}
