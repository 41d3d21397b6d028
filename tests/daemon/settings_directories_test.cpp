// What the file system tells about the directories of the disk tier.
#include "daemon/settings_reload.hpp"

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

TEST(SettingsDirectories, FindsTwoNamesOfOneDirectoryWhetherItExistsOrNot) {
  test::temporary_folder folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  std::filesystem::create_directory_symlink(folder / "a", folder / "link");
  EXPECT_TRUE(repeated_directories(with_paths({folder / "a", folder / "b"})).empty());
  EXPECT_EQ(repeated_directories(with_paths({folder / "a", folder / "b", folder / "link"})).size(), 1u);
  EXPECT_EQ(repeated_directories(with_paths({folder / "absent", folder / "./absent"})).size(), 1u);
  auto off = with_paths({folder / "a", folder / "link"});
  off.disk.enabled = false;
  EXPECT_TRUE(repeated_directories(off).empty());
}

TEST(SettingsDirectories, MissingOnesAreProblemsExceptTheDefault) {
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

TEST(SettingsDirectories, OnlyTheDefaultIsMade) {
  test::temporary_folder folder;
  auto with = with_paths({});
  with.disk.path = {folder / "a/b"};
  make_default_directory(with, "/default");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  make_default_directory(with, folder / "a/b");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b"));
}

} // namespace
} // namespace terrace
