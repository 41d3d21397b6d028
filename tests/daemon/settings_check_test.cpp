#include "daemon/settings_check.hpp"

#include "base/unique_fd.hpp"
#include "settings_support.hpp"
#include "tests/support/temporary_folder.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace terrace {
namespace settings_check_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* elsewhere = "/default";

/// A socket and a disk in a folder of the test, and no metrics.
class CheckOfTheMachine : public ::testing::Test {
 protected:
  CheckOfTheMachine() : with_(default_settings(test_environment())) {
    with_.disk.path = {folder_.path()};
    with_.listen.front().path = folder_ / "terrace.sock";
    with_.metrics.address = "";
  }
  machine_findings found() const { return check_machine(with_, elsewhere, elsewhere); }
  std::string failure() const {
    auto all = found();
    EXPECT_EQ(all.failures.size(), 1u);
    return all.failures.empty() ? std::string() : all.failures[0].option + " " + all.failures[0].wrong;
  }
  unique_fd listen_at_socket() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, with_.listen.front().path.c_str());
    unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket.get(), 8), 0);
    return socket;
  }
  /// A port of the loopback interface, and "127.0.0.1:PORT".
  static std::pair<unique_fd, std::string> listen_at_port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    unique_fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(socket.get(), 8), 0);
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    return {std::move(socket), "127.0.0.1:" + std::to_string(ntohs(address.sin_port))};
  }

  test::temporary_folder folder_;
  settings with_;
};

TEST_F(CheckOfTheMachine, FindsNothingWhereNothingIsWrong) {
  EXPECT_THAT(found().failures, IsEmpty());
  EXPECT_THAT(found().warnings, IsEmpty());
  (void) listen_at_socket(); // and ends: the socket is stale
  EXPECT_TRUE(std::filesystem::exists(with_.listen.front().path));
  EXPECT_THAT(found().failures, IsEmpty());
}

TEST_F(CheckOfTheMachine, ASocketsPathMustNotBeSomethingElse) {
  std::ofstream(folder_ / "terrace.sock") << "text";
  EXPECT_THAT(failure(), HasSubstr("which exists and is not a socket"));
  with_.listen.front().path = folder_ / "folder";
  std::filesystem::create_directory(folder_ / "folder");
  EXPECT_THAT(failure(), HasSubstr("which exists and is a folder"));
}

TEST_F(CheckOfTheMachine, ASocketsFolderMustBeThisUsers) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can become another user";
  std::filesystem::create_directory(folder_ / "closed");
  ::chmod((folder_ / "closed").c_str(), 0700);
  with_.listen.front().path = folder_ / "closed/terrace.sock";
  ASSERT_EQ(::seteuid(65534), 0);
  auto text = failure();
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(text, HasSubstr("in whose folder this user can make no socket: Permission denied"));
  EXPECT_THAT(found().failures, IsEmpty());
}

TEST_F(CheckOfTheMachine, ASocketWhereAnotherProgramListensIsAFailure) {
  auto listening = listen_at_socket();
  EXPECT_THAT(failure(), HasSubstr("where process " + std::to_string(::getpid()) + " (test_daemon) listens"));
}

TEST_F(CheckOfTheMachine, APortOfAnotherProcessIsAFailureForRedisAndAWarningForMetrics) {
  auto [listening, address] = listen_at_port();
  with_.metrics.address = address;
  EXPECT_THAT(found().failures, IsEmpty());
  ASSERT_EQ(found().warnings.size(), 1u);
  EXPECT_THAT(found().warnings[0].wrong, HasSubstr("so that the daemon serves without metrics"));
  with_.metrics.address = "";
  with_.resp.emplace_back();
  with_.resp.back().address = address;
  EXPECT_THAT(failure(), HasSubstr("resp.address is \"" + address + "\", and process "));
  listening = unique_fd();
  EXPECT_THAT(found().failures, IsEmpty());
}

TEST_F(CheckOfTheMachine, AMissingDiskIsAWarningBecauseTheDaemonStarts) {
  with_.disk.path = {folder_ / "absent"};
  EXPECT_THAT(found().failures, IsEmpty());
  ASSERT_EQ(found().warnings.size(), 1u);
  EXPECT_THAT(found().warnings[0].wrong, HasSubstr("starts with the disk tier off"));
  with_.disk.path = {folder_.path(), folder_ / "absent"};
  EXPECT_THAT(found().warnings.at(0).wrong, HasSubstr("starts without this path"));
}

TEST(MachineFindings, AreLeftOutWhereTheFileIsWrong) {
  const auto about = [](const char* option) { return option_problem{option, "is wrong", "another", "fix"}; };
  machine_findings found{{about("listen.path"), about("resp.address")},
                         {about("disk.path"), about("metrics.address")}};
  leave_out(found, {"listen", "disk.path", "metrics.token_file", "worker"});
  ASSERT_EQ(found.failures.size(), 1U);
  EXPECT_EQ(found.failures[0].option, "resp.address");
  ASSERT_EQ(found.warnings.size(), 1U);
  EXPECT_EQ(found.warnings[0].option, "metrics.address");
  EXPECT_EQ(findings_report(found),
            "failure\tresp.address is wrong\tfix\nwarning\tmetrics.address is wrong\tfix\n");
}

TEST_F(CheckOfTheMachine, NeedsHaveALineForEach) {
  with_.disk.path = {folder_ / "absent"};
  auto text = needs_report(with_, found(), elsewhere, with_.listen.front().path);
  EXPECT_THAT(text, HasSubstr("warning\tdisk.path names "));
  EXPECT_THAT(text,
              HasSubstr("\nsocket\t" + with_.listen.front().path + "\nmakes\t" + folder_.path() + "\n"));
  EXPECT_THAT(text, HasSubstr("\ndisk\t" + with_.disk.path[0] + "\ndisk_bytes\t4294967296\n"));
  EXPECT_THAT(needs_report(with_, {}, with_.disk.path[0], elsewhere),
              HasSubstr("makes\t" + with_.disk.path[0]));
}

} // namespace settings_check_test
} // namespace terrace
