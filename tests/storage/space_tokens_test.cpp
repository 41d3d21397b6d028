#include "storage/state_records.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace terrace {
namespace space_tokens_test {

space_fingerprint space_number(uint8_t n) {
  space_fingerprint made{};
  made.fill(n);
  return made;
}

TEST(SpaceTokens, AreReadAsTheyWereWritten) {
  test::temporary_folder folder;
  const std::string at = folder.path() + "/state"; // which is made
  EXPECT_EQ(read_tokens(at, "one"), space_tokens{}) << "nothing is known";
  const space_tokens tokens{.all = 7, .of = {{space_number(1), 9}, {space_number(2), UINT64_MAX - 1}}};
  ASSERT_TRUE(write_tokens(at, "one", tokens));
  EXPECT_EQ(read_tokens(at, "one"), tokens);
  EXPECT_EQ(read_tokens(at, "another"), space_tokens{});
  ASSERT_TRUE(write_tokens(at, "one", {.all = 8, .of = {}}));
  EXPECT_EQ(read_tokens(at, "one"), (space_tokens{.all = 8, .of = {}}));
}

TEST(SpaceTokens, ThatAreDamagedAreNone) {
  test::temporary_folder folder;
  ASSERT_TRUE(write_tokens(folder.path(), "one", {.all = 7, .of = {{space_number(1), 9}}}));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    std::ofstream(entry.path(), std::ios::app) << "more";
  EXPECT_EQ(read_tokens(folder.path(), "one").all, space_tokens::unreadable);
  ASSERT_TRUE(write_tokens(folder.path(), "one", {.all = 7, .of = {}}));
  EXPECT_EQ(read_tokens(folder.path(), "one").all, 7U);
}

TEST(SpaceTokens, CannotBeWrittenWithoutAFolder) {
  EXPECT_EQ(write_tokens("", "one", {}).error().code, errc::unsupported);
  EXPECT_FALSE(write_tokens("/dev/null/folder", "one", {}));
}

} // namespace space_tokens_test
} // namespace terrace
