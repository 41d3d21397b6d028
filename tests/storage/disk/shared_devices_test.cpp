#include "storage/disk/disk_paths.hpp"

#include "base/unique_fd.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

namespace terrace {
namespace {

constexpr io_limits limits;

TEST(SharedDevices, FilesOfTwoGroupsOnOneDeviceContend) {
  shared_devices devices;
  auto one = devices.join_device(7, 1, limits);
  auto two = devices.join_device(7, 2, limits);
  auto elsewhere = devices.join_device(8, 3, limits);
  elsewhere->room();
  EXPECT_EQ(one->room().bytes, UINT64_MAX);
  EXPECT_EQ(two->room().bytes, limits.shared_bytes / 2);
  EXPECT_TRUE(two->contended());
  elsewhere->room();
  EXPECT_FALSE(elsewhere->contended());
  two.reset();
  one->room();
  EXPECT_FALSE(one->contended()) << "the other has left";
}

TEST(SharedDevices, KnowTheDeviceOfAnOpenFile) {
  test::temporary_folder folder;
  shared_devices devices;
  std::vector<std::shared_ptr<device_share>> shares;
  for (uint64_t group : {1, 2}) {
    std::string path = folder / std::to_string(group);
    std::ofstream(path) << "a file";
    unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    shares.push_back(devices.join(file.get(), group, limits));
    ASSERT_TRUE(shares.back());
    shares.back()->room();
  }
  EXPECT_TRUE(shares.back()->contended());
  EXPECT_FALSE(devices.join(-1, 3, limits));
}

TEST(SharedDevices, APartitionIsOnItsDisk) {
  test::temporary_folder folder;
  namespace fs = std::filesystem;
  fs::path disk = folder / "disk";
  fs::create_directories(disk / "part");
  fs::create_directories(folder / "block");
  std::ofstream(disk / "dev") << "8:16\n";
  std::ofstream(disk / "part" / "dev") << "8:17\n";
  std::ofstream(disk / "part" / "partition") << "1\n";
  fs::create_directory_symlink(disk, folder / "block/8:16");
  fs::create_directory_symlink(disk / "part", folder / "block/8:17");
  std::string block = folder / "block";
  EXPECT_EQ(whole_device(makedev(8, 17), block), makedev(8, 16));
  EXPECT_EQ(whole_device(makedev(8, 16), block), makedev(8, 16));
  EXPECT_EQ(whole_device(makedev(0, 40), block), makedev(0, 40)) << "a file system without a block device";
}

} // namespace
} // namespace terrace
