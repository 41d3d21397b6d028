// Cases that fail the first time, or always: commands_test.py runs them with tools/run_tests.py. SOMETIMES names the folder
// in which they note that they have been run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

/// Whether it was called with this name before. The folder's file `order` has who began.
bool seen(const std::string& name) {
  std::filesystem::path folder = std::getenv("SOMETIMES"), mark = folder / name;
  std::ofstream(folder / "order", std::ios::app) << name << "\n";
  bool before = std::filesystem::exists(mark);
  std::ofstream(mark) << "seen";
  return before;
}

TEST(Sometimes, Passes) { SUCCEED(); }

class FailsOnce : public ::testing::TestWithParam<int> {};
TEST_P(FailsOnce, Number) {
  std::printf("number %d says why\n", GetParam());
  EXPECT_TRUE(seen("once" + std::to_string(GetParam())));
}
INSTANTIATE_TEST_SUITE_P(Sometimes, FailsOnce, ::testing::Range(0, 4));

TEST(Sometimes, FailsTwice) {
  bool first = !seen("first");
  EXPECT_TRUE(!first && seen("second"));
}
TEST(Sometimes, FailsAlways) { FAIL() << "as always"; }
TEST(Sometimes, CrashesOnce) {
  if (!seen("crash"))
    std::abort();
}

} // namespace
