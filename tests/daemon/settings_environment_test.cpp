#include "daemon/settings.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace terrace {
namespace {

TEST(Environment, SystemdsDirectoriesComeFirst) {
  environment env;
  env.uid = 0;
  env.runtime_directory = "/run/terrace-a";
  env.state_directory = "/var/lib/terrace-a";
  EXPECT_EQ(env.socket_path(), "/run/terrace-a/terrace.sock");
  EXPECT_EQ(env.state_path(), "/var/lib/terrace-a");
}

TEST(Environment, RootHasTheSystemsPlaces) {
  environment env;
  env.uid = 0;
  env.xdg_runtime_dir = "/run/user/0";
  EXPECT_EQ(env.socket_path(), "/run/terrace/terrace.sock");
  EXPECT_EQ(env.state_path(), "/var/lib/terrace");
}

TEST(Environment, AUserHasPlacesOfTheirOwn) {
  environment env;
  env.uid = 1000;
  EXPECT_EQ(env.socket_path(), "/tmp/terrace-1000/terrace.sock");
  EXPECT_EQ(env.state_path(), "/var/tmp/terrace-1000");
  env.home = "/home/a";
  EXPECT_EQ(env.state_path(), "/home/a/.local/state/terrace");
  env.xdg_runtime_dir = "/run/user/1000";
  env.xdg_state_home = "/state";
  EXPECT_EQ(env.socket_path(), "/run/user/1000/terrace.sock");
  EXPECT_EQ(env.state_path(), "/state/terrace");
}

TEST(Environment, ZeroThreadsMeanWhatTheProcessorsAllow) {
  environment env;
  env.processors = 1;
  EXPECT_EQ(env.default_workers(), 1u);
  EXPECT_EQ(env.default_copiers(), 2u);
  EXPECT_EQ(env.transfer_workers(0), 0u) << "nothing is spent on remote tiers where there are none";
  EXPECT_EQ(env.transfer_workers(1), 1u);
  EXPECT_EQ(env.transfer_workers(3), 1u);
  env.processors = 128;
  EXPECT_EQ(env.default_workers(), 4u);
  EXPECT_EQ(env.default_copiers(), 8u);
  EXPECT_EQ(env.transfer_workers(2), 2u);
  EXPECT_EQ(env.transfer_workers(9), 4u);
}

TEST(Environment, TheWatchdogIsOursUnlessItNamesAnotherProcess) {
  setenv("WATCHDOG_USEC", "30000000", 1);
  unsetenv("WATCHDOG_PID");
  EXPECT_EQ(environment::current().watchdog, std::chrono::seconds(30));
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(environment::current().watchdog, std::chrono::seconds(30));
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(environment::current().watchdog, std::nullopt);
  setenv("WATCHDOG_USEC", "soon", 1);
  unsetenv("WATCHDOG_PID");
  EXPECT_EQ(environment::current().watchdog, std::nullopt);
  unsetenv("WATCHDOG_USEC");
}

TEST(Environment, TakesTheFirstOfSeveralDirectories) {
  setenv("RUNTIME_DIRECTORY", "/run/terrace:/run/other", 1);
  EXPECT_EQ(environment::current().runtime_directory, "/run/terrace");
  unsetenv("RUNTIME_DIRECTORY");
  EXPECT_GE(environment::current().processors, 1u);
}

} // namespace
} // namespace terrace
