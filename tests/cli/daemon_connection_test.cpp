#include "cli/daemon_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

TEST(DaemonConnection, TheDefaultSocketIsAnAbsolutePath) { EXPECT_EQ(default_socket_path().front(), '/'); }

TEST(DaemonConnection, ASocketThatNobodyServesIsUnreachable) {
  daemon_options options;
  options.socket = "/does/not/exist.sock";
  auto daemon = connect(options, "test");
  ASSERT_FALSE(daemon.has_value());
  EXPECT_EQ(daemon.error().code, exit_code::unreachable);
  EXPECT_THAT(daemon.error().text, testing::HasSubstr("give its socket with --socket"));
}

TEST(DaemonConnection, APathThatNoSocketCanHaveIsAMistakeOfTheCommandLine) {
  daemon_options options;
  options.socket = std::string(200, 'x');
  EXPECT_EQ(connect(options, "test").error().code, exit_code::usage);
}

} // namespace
} // namespace terrace::cli
