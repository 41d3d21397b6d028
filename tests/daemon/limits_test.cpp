// What the daemon needs of the system's limits.
#include "daemon/limits.hpp"

#include "settings_support.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(Limits, NeedsGrowWithSegmentsPathsAndThreads) {
  auto env = test_environment();
  auto small = default_settings(env);
  auto base = needs_of(small, env);
  auto large = small;
  large.host.bytes = 8 * gibibyte;
  large.host.segment_bytes = 512 * mebibyte;
  large.disk.path = {"/a", "/b"};
  large.copier.threads = 20;
  auto more = needs_of(large, env);
  EXPECT_EQ(more.descriptors, base.descriptors + 15 + 2); // segments; a second path
  EXPECT_EQ(more.host_file_bytes, 512 * mebibyte);
  EXPECT_EQ(more.disk_file_bytes, base.disk_file_bytes / 2);
  EXPECT_GT(more.threads, base.threads + 17);
  large.disk.bytes = 0;
  EXPECT_EQ(needs_of(large, env).disk_file_bytes, 0u);
}

TEST(Limits, ARemoteTierNeedsAWorkerAndConnections) {
  auto env = test_environment();
  auto with = default_settings(env);
  auto base = needs_of(with, env);
  with.remote.resize(1);
  EXPECT_EQ(needs_of(with, env).threads, base.threads + 1);
  EXPECT_EQ(needs_of(with, env).descriptors, base.descriptors + 4 + 3);
}

TEST(Limits, ThoseOfATestAreEnoughForTheDefaults) {
  auto env = test_environment();
  auto enough = check_limits(needs_of(default_settings(env), env));
  EXPECT_TRUE(enough) << enough.error().text;
}

TEST(Limits, TooFewAreNamedWithTheFix) {
  auto refused = check_limits({.descriptors = 1ULL << 40});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("RLIMIT_NOFILE"), std::string::npos) << refused.error().text;
}

} // namespace
} // namespace terrace
