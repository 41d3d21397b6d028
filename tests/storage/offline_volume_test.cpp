#include "storage/offline_volume.hpp"

#include "storage/extent_file.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace terrace {
namespace {

namespace fs = std::filesystem;

class OfflineStore : public testing::Test {
 protected:
  OfflineStore() {
    std::string name = (fs::temp_directory_path() / "terrace-offline-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ / "volume";
  }
  ~OfflineStore() override { fs::remove_all(folder_); }

  errc refusal(const std::string& path, volume_access access = volume_access::read) {
    auto volume = offline_volume::open(path, access);
    EXPECT_FALSE(volume);
    return volume ? errc::ok : volume.error().code;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(OfflineStore, OpensWhatADaemonMadeWithoutChangingIt) {
  superblock made = extent_file::open({.path = path_, .capacity_bytes = 4 << 20})->block();
  auto volume = offline_volume::open(path_, volume_access::read);
  ASSERT_TRUE(volume) << volume.error().text;
  auto block = read_volume(volume->device());
  ASSERT_TRUE(block) << block.error().text;
  EXPECT_EQ(*block, made);
  EXPECT_EQ(arena_bytes(*block, 4 << 20), (4u << 20) - block->layout.extents_begin);
  EXPECT_EQ(arena_bytes(*block, 100), 0u);
}

TEST_F(OfflineStore, SeveralMayReadAndNoDaemonMayOpenMeanwhile) {
  (void) extent_file::open({.path = path_, .capacity_bytes = 4 << 20});
  auto one = offline_volume::open(path_, volume_access::read);
  auto two = offline_volume::open(path_, volume_access::read);
  EXPECT_TRUE(one && two);
  EXPECT_EQ(refusal(path_, volume_access::write), errc::busy);
  auto daemon = extent_file::open({.path = path_, .capacity_bytes = 4 << 20});
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().code, errc::busy);
}

TEST_F(OfflineStore, WhileADaemonHasItNamesTheDaemon) {
  auto daemon = extent_file::open({.path = path_, .capacity_bytes = 4 << 20});
  ASSERT_TRUE(daemon);
  for (volume_access access : {volume_access::read, volume_access::write}) {
    auto volume = offline_volume::open(path_, access);
    ASSERT_FALSE(volume);
    EXPECT_EQ(volume.error().code, errc::busy);
    EXPECT_NE(volume.error().text.find("process " + std::to_string(::getpid())), std::string::npos)
        << volume.error().text;
    EXPECT_NE(volume.error().text.find("stop it first"), std::string::npos) << volume.error().text;
  }
}

TEST_F(OfflineStore, RefusesWhatIsNoFile) {
  EXPECT_EQ(refusal(path_), errc::not_found);
  EXPECT_EQ(refusal(folder_), errc::unsupported);
  EXPECT_EQ(refusal(folder_, volume_access::write), errc::unsupported);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(refusal(path_), errc::unsupported);
  EXPECT_EQ(refusal("/dev/null"), errc::unsupported);
}

TEST_F(OfflineStore, RefusesWhatIsNoStore) {
  std::ofstream(path_) << "a letter";
  auto volume = offline_volume::open(path_, volume_access::read);
  ASSERT_TRUE(volume);
  auto block = read_volume(volume->device());
  ASSERT_FALSE(block);
  EXPECT_EQ(block.error().code, errc::denied) << block.error().text;
}

} // namespace
} // namespace terrace
