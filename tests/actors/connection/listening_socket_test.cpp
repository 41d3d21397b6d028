#include "actors/connection/listener_actor.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

using namespace terrace;

namespace {

struct ListeningSocket : ::testing::Test {
  terrace::test::temporary_folder folder;
  std::string path = folder / "s";

  bool connects() const {
    unique_fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return ::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  mode_t mode_of(const std::string& what) const {
    struct stat status {};
    EXPECT_EQ(::stat(what.c_str(), &status), 0);
    return status.st_mode & 0777;
  }
};

} // namespace

TEST_F(ListeningSocket, ListensWithItsMode) {
  auto socket = open_listening_socket(path, 0660);
  ASSERT_TRUE(socket) << socket.error().text;
  EXPECT_TRUE(connects());
  EXPECT_EQ(mode_of(path), 0660u);
}

TEST_F(ListeningSocket, MakesNoMissingFolder) {
  path = (folder / "a" / "s").string();
  auto socket = open_listening_socket(path, 0600);
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().text.find("cannot bind " + path), std::string::npos) << socket.error().text;
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST_F(ListeningSocket, ReplacesTheSocketOfADaemonThatWasKilled) {
  { auto killed = open_listening_socket(path, 0600); } // closed, and its file stays
  ASSERT_TRUE(std::filesystem::exists(path));
  ASSERT_FALSE(connects());
  auto socket = open_listening_socket(path, 0600);
  ASSERT_TRUE(socket) << socket.error().text;
  EXPECT_TRUE(connects());
}

TEST_F(ListeningSocket, ReplacesASocketThatStillListensForADaemonThatHasEnded) {
  // As the kernel keeps it for a while behind a killed process; this one's parent has not waited for it either.
  unique_fd kept(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(kept.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  pid_t listener = ::fork();
  if (listener == 0)
    ::_exit(::listen(kept.get(), 1));
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(listener), &ended, WEXITED | WNOWAIT), 0);
  ASSERT_TRUE(connects());
  auto socket = open_listening_socket(path, 0600);
  EXPECT_TRUE(socket) << socket.error().text;
  EXPECT_EQ(::waitpid(listener, nullptr, 0), listener);
}

TEST_F(ListeningSocket, LeavesTheSocketOfALivingDaemonAlone) {
  auto first = open_listening_socket(path, 0600);
  ASSERT_TRUE(first);
  auto second = open_listening_socket(path, 0600);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::busy);
  EXPECT_NE(second.error().text.find(path), std::string::npos);
  EXPECT_TRUE(connects());
}

TEST_F(ListeningSocket, DoesNotTouchAFileThatIsNoSocket) {
  std::ofstream(path) << "precious";
  auto socket = open_listening_socket(path, 0600);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, errc::bad_request);
  std::string content;
  std::ifstream(path) >> content;
  EXPECT_EQ(content, "precious");
}

TEST_F(ListeningSocket, DoesNotTouchASocketThatItCannotProbe) {
  unique_fd datagrams(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(datagrams.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  auto socket = open_listening_socket(path, 0600);
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().text.find(path), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(ListeningSocket, RefusesAPathThatTheKernelCannotTake) {
  path = (folder / std::string(120, 'x')).string();
  auto socket = open_listening_socket(path, 0600);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, errc::bad_request);
  EXPECT_NE(socket.error().text.find("107"), std::string::npos) << socket.error().text;
}

TEST_F(ListeningSocket, SaysWhatFailedWhenItCannotBind) {
  std::ofstream(folder / "file") << "x";
  path = (folder / "file" / "s").string(); // a file where a folder should be
  auto socket = open_listening_socket(path, 0600);
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().text.find(path), std::string::npos);
}
