// Checks of settings against this machine.
#include "daemon/settings_machine.hpp"

#include "settings_support.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace terrace {
namespace {

settings with_paths(std::vector<std::string> paths) {
  auto with = default_settings(test_environment());
  with.disk.path = std::move(paths);
  return with;
}

TEST(SettingsMachine, FindsTwoNamesOfOneDirectoryWhetherItExistsOrNot) {
  test::temporary_folder folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  std::filesystem::create_directory_symlink(folder / "a", folder / "link");
  EXPECT_TRUE(repeated_directories(with_paths({folder / "a", folder / "b"})).empty());
  EXPECT_EQ(repeated_directories(with_paths({folder / "a", folder / "b", folder / "link"})).size(), 1u);
  EXPECT_EQ(repeated_directories(with_paths({folder / "absent", folder / "./absent"})).size(), 1u);
  auto off = with_paths({folder / "a", folder / "link"});
  off.disk.bytes = 0;
  EXPECT_TRUE(repeated_directories(off).empty());
}

TEST(SettingsMachine, MissingOnesAreProblemsExceptTheDefault) {
  test::temporary_folder folder;
  std::ofstream(folder / "file") << "text";
  auto found =
      missing_directories(with_paths({folder.path(), folder / "absent", folder / "file"}), "/default");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0].wrong.find("absent\", which does not exist"), std::string::npos) << found[0].wrong;
  EXPECT_NE(found[1].wrong.find("file\", which is not a directory"), std::string::npos) << found[1].wrong;
  auto with = with_paths({});
  with.disk.path = {folder / "state"};
  EXPECT_EQ(missing_directories(with, "/default").size(), 1u);
  EXPECT_TRUE(missing_directories(with, folder / "state").empty());
}

TEST(SettingsMachine, OnlyTheDefaultIsMade) {
  test::temporary_folder folder;
  auto with = with_paths({});
  with.disk.path = {folder / "a/b"};
  with.listen.front().path = folder / "c/d/socket";
  make_default_directories(with, "/default", "/none");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  make_default_directories(with, folder / "a/b", with.listen.front().path);
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b"));
  EXPECT_TRUE(std::filesystem::is_directory(folder / "c/d"));
}

} // namespace
} // namespace terrace
