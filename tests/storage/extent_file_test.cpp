#include "storage/extent_file.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace terrace {
namespace {

namespace fs = std::filesystem;

class ExtentFile : public testing::Test {
 protected:
  ExtentFile() {
    std::string name = (fs::temp_directory_path() / "terrace-extents-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    options_ = {.path = directory_ / "volume", .capacity_bytes = 4 << 20};
  }
  ~ExtentFile() override { fs::remove_all(directory_); }

  uint64_t allocated_bytes() const {
    struct stat s {};
    ::stat(options_.path.c_str(), &s);
    return static_cast<uint64_t>(s.st_blocks) * 512;
  }

  void damage(int at) {
    std::fstream(options_.path, std::ios::in | std::ios::out | std::ios::binary).seekp(at).put('!');
  }

  void write_file(const std::string& text) { std::ofstream(options_.path) << text; }

  fs::path directory_;
  extent_file_options options_;
};

TEST_F(ExtentFile, AllocatesItsWholeCapacityAtOnce) {
  auto file = extent_file::open(options_);
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(fs::file_size(options_.path), options_.capacity_bytes);
  EXPECT_GE(allocated_bytes(), options_.capacity_bytes);
  EXPECT_EQ(file->extents_begin() + file->extents_bytes(), options_.capacity_bytes);
  EXPECT_EQ(file->extents_begin() % file->alignment_bytes(), 0u);
}

TEST_F(ExtentFile, ReadersGetTheSameFileWithoutItsLock) {
  EXPECT_FALSE(extent_file::open(options_)->for_readers()) << "nobody asked for it";
  EXPECT_EQ(extent_file::open(options_)->readers_refusal(), "");
  options_.for_readers = true;
  options_.direct = false;
  EXPECT_FALSE(extent_file::open(options_)->for_readers());
  EXPECT_EQ(extent_file::open(options_)->readers_refusal(),
            options_.path + ": O_DIRECT is turned off in the configuration");
  options_.direct = true;
  auto file = extent_file::open(options_);
  ASSERT_TRUE(file) << file.error().text;
  if (!file->direct())
    GTEST_SKIP() << file->buffered_reason();
  auto readers = file->for_readers();
  ASSERT_TRUE(readers) << file->readers_refusal();
  EXPECT_EQ(file->readers_refusal(), "");
  EXPECT_EQ(readers->path, options_.path);
  struct stat ours {
  }, theirs{};
  ASSERT_EQ(::fstat(file->fd(), &ours), 0);
  ASSERT_EQ(::fstat(readers->descriptor.get(), &theirs), 0);
  EXPECT_EQ(ours.st_ino, theirs.st_ino);
  int flags = ::fcntl(readers->descriptor.get(), F_GETFL);
  EXPECT_EQ(flags & O_ACCMODE, O_RDONLY);
  EXPECT_NE(flags & O_DIRECT, 0);
  file = tl::unexpected(error{errc::gone, "closed"});
  EXPECT_TRUE(extent_file::open(options_)) << "what readers have holds no lock";
}

TEST_F(ExtentFile, TakesAlignedReadsAndWritesWhetherDirectOrNot) {
  for (bool direct : {true, false}) {
    options_.direct = direct;
    auto file = extent_file::open(options_);
    ASSERT_TRUE(file) << file.error().text;
    alignas(4096) static std::array<char, 4096> out, in;
    out.fill('x');
    auto last = static_cast<off_t>(file->extents_begin() + file->extents_bytes() - out.size());
    ASSERT_EQ(::pwrite(file->fd(), out.data(), out.size(), last), 4096);
    ASSERT_EQ(::pread(file->fd(), in.data(), in.size(), last), 4096);
    EXPECT_EQ(in, out);
    EXPECT_TRUE(direct || !file->direct());
    EXPECT_EQ(file->direct(), file->buffered_reason().empty());
  }
}

TEST_F(ExtentFile, KeepsItsIdentityAndRaisesItsEpochWhenOpenedAgain) {
  auto first = extent_file::open(options_);
  ASSERT_TRUE(first);
  auto volume = first->volume();
  auto epoch = first->epoch();
  first = fail(errc::gone, "closed");
  auto second = extent_file::open(options_);
  ASSERT_TRUE(second) << second.error().text;
  EXPECT_EQ(second->volume(), volume);
  EXPECT_EQ(second->epoch(), epoch + 1);
}

TEST_F(ExtentFile, GrowsAndShrinksToTheConfiguredCapacity) {
  for (uint64_t capacity : {8 << 20, 2 << 20, 4 << 20}) {
    options_.capacity_bytes = capacity;
    auto file = extent_file::open(options_);
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_EQ(fs::file_size(options_.path), capacity);
    EXPECT_EQ(file->capacity_bytes(), capacity);
  }
}

TEST_F(ExtentFile, IsRefusedToASecondOwner) {
  auto first = extent_file::open(options_);
  ASSERT_TRUE(first);
  auto second = extent_file::open(options_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::busy);
  EXPECT_NE(second.error().text.find(options_.path), std::string::npos);
}

TEST_F(ExtentFile, SaysWhatIsMissingWhenTheFileSystemIsTooSmall) {
  options_.capacity_bytes = 1ULL << 60;
  auto file = extent_file::open(options_);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, errc::no_space);
  EXPECT_NE(file.error().text.find(options_.path), std::string::npos) << file.error().text;
  EXPECT_NE(file.error().text.find(std::to_string(1ULL << 60)), std::string::npos) << file.error().text;
  EXPECT_FALSE(fs::exists(options_.path)) << "a failed start leaves no file behind";
}

TEST_F(ExtentFile, AFailedResizeLeavesAStoreAsItWas) {
  ASSERT_TRUE(extent_file::open(options_));
  options_.capacity_bytes = 1ULL << 60;
  EXPECT_EQ(extent_file::open(options_).error().code, errc::no_space);
  EXPECT_EQ(fs::file_size(options_.path), 4u << 20);
}

TEST_F(ExtentFile, RefusesAFileThatIsNoStoreUntilToldToTakeIt) {
  write_file("somebody's thesis, " + std::string(5000, '.'));
  auto file = extent_file::open(options_);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, errc::denied);
  EXPECT_EQ(fs::file_size(options_.path), 5019u);
  options_.wipe_foreign = true;
  EXPECT_TRUE(extent_file::open(options_));
}

TEST_F(ExtentFile, ADamagedStoreIsReportedNotUsed) {
  ASSERT_TRUE(extent_file::open(options_));
  damage(20);
  EXPECT_TRUE(extent_file::open(options_)) << "there is a second copy";
  damage(20);
  damage(4096 + 20);
  EXPECT_EQ(extent_file::open(options_).error().code, errc::internal);
  options_.wipe_foreign = true;
  auto wiped = extent_file::open(options_);
  ASSERT_TRUE(wiped);
  EXPECT_TRUE(wiped->made_new());
}

TEST_F(ExtentFile, AStoreOfAnotherMachineOrGroupIsRefusedUntilToldToWipeIt) {
  options_.owner = {{1, 2, 3}, "red"};
  auto first = extent_file::open(options_);
  ASSERT_TRUE(first);
  auto volume = first->volume();
  first = fail(errc::gone, "closed");
  for (const volume_owner& other : {volume_owner{{1, 2, 4}, "red"}, volume_owner{{1, 2, 3}, "blue"}}) {
    options_.owner = other;
    auto refused = extent_file::open(options_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::denied);
    EXPECT_NE(refused.error().text.find("'red'"), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find("'" + other.group + "'"), std::string::npos) << refused.error().text;
  }
  options_.owner = {{1, 2, 3}, "red"};
  EXPECT_EQ(extent_file::open(options_)->volume(), volume) << "refusing changes nothing";
  options_.owner = {{1, 2, 3}, "blue"};
  options_.wipe_foreign = true;
  auto wiped = extent_file::open(options_);
  ASSERT_TRUE(wiped) << wiped.error().text;
  EXPECT_NE(wiped->volume(), volume);
  EXPECT_TRUE(wiped->made_new());
}

TEST_F(ExtentFile, KnowsItsOwnerByTheFirstBytesOfALongName) {
  options_.owner.group = std::string(100, 'x');
  ASSERT_TRUE(extent_file::open(options_));
  EXPECT_TRUE(extent_file::open(options_));
}

TEST_F(ExtentFile, KeepsItsLayoutWhileItFitsAndStartsOverWhenItDoesNot) {
  options_.capacity_bytes = 64 << 20;
  auto large = extent_file::open(options_);
  ASSERT_TRUE(large);
  auto block = large->block();
  EXPECT_TRUE(large->made_new());
  large = fail(errc::gone, "closed");
  options_.capacity_bytes = 16 << 20;
  auto smaller = extent_file::open(options_);
  ASSERT_TRUE(smaller);
  EXPECT_FALSE(smaller->made_new());
  EXPECT_EQ(smaller->block().layout, block.layout);
  smaller = fail(errc::gone, "closed");
  options_.capacity_bytes = 1 << 20;
  auto tiny = extent_file::open(options_);
  ASSERT_TRUE(tiny);
  EXPECT_TRUE(tiny->made_new());
  EXPECT_NE(tiny->volume(), block.volume);
}

TEST_F(ExtentFile, AnUnfinishedStoreIsStartedOver) {
  write_file(std::string(8192, '\0'));
  auto file = extent_file::open(options_);
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->epoch(), 1u);
}

TEST_F(ExtentFile, RefusesWhatCannotBeAStore) {
  options_.path = directory_;
  EXPECT_EQ(extent_file::open(options_).error().code, errc::unsupported);
  options_.path = directory_ / "missing" / "volume";
  EXPECT_EQ(extent_file::open(options_).error().code, errc::not_found);
  options_ = {.path = directory_ / "volume", .capacity_bytes = 4096};
  EXPECT_EQ(extent_file::open(options_).error().code, errc::bad_request);
}

} // namespace
} // namespace terrace
