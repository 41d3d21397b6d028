// A disk that fails under a running daemon, and one that comes back.
#include "workload.hpp"

#include <sys/mount.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace terrace::e2e {
namespace {

constexpr uint64_t superblocks_bytes = 8192; // both superblock copies, at the begin of the file

/// The daemon's extent file, as somebody else may change it.
class disk_file {
 public:
  explicit disk_file(const std::string& folder)
      : fd_(::open((folder + "/terrace.extents").c_str(), O_RDWR | O_CLOEXEC)) {
    size_ = ::lseek(fd_.get(), 0, SEEK_END);
    EXPECT_EQ(::pread(fd_.get(), superblocks_.data(), superblocks_.size(), 0),
              static_cast<ssize_t>(superblocks_.size()));
  }
  void cut_off() { EXPECT_EQ(::ftruncate(fd_.get(), 0), 0); }
  /// Restores its length and superblocks, and nothing else.
  void give_back() {
    EXPECT_EQ(::ftruncate(fd_.get(), size_), 0);
    EXPECT_EQ(::pwrite(fd_.get(), superblocks_.data(), superblocks_.size(), 0),
              static_cast<ssize_t>(superblocks_.size()));
  }
  /// Frees the space of all extents; writing there needs new space.
  bool punch() {
    return ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 65536, size_ - 65536) == 0;
  }

 private:
  unique_fd fd_;
  off_t size_ = 0;
  std::array<char, superblocks_bytes> superblocks_{};
};

TEST(DiskFailure, AFileThatIsCutOffDegradesTheTierUntilItIsThereAgain) {
  temporary_folder state;
  daemon_under_test daemon({.disk_bytes = 128 * mebibyte, .state_dir = state.path()});
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 8);
  std::vector<std::vector<digest>> others;
  for (uint64_t seed = 11; seed < 14; ++seed)
    others.push_back(chain_of(seed, 8));
  {
    tester first(daemon.socket());
    first.store(chain);
    for (const auto& other : others)
      first.store(other);
  }
  // After a restart everything is on disk, and no write makes the file long again.
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  ASSERT_EQ(client.lookup(chain, false, on_disk).found_chunks, 8U);

  disk_file file(state.path());
  file.cut_off();
  EXPECT_EQ(client.load_and_check(chain), 0U); // a shorter prefix, and no error
  for (const auto& other : others) // one read may cover a whole chain, and four in a row must fail
    EXPECT_EQ(client.load_and_check(other), 0U);
  ASSERT_TRUE(daemon.await_log("the disk tier is degraded"));
  auto disk = client.tier("disk");
  EXPECT_EQ(disk.state, "degraded");
  EXPECT_NE(disk.reason.find("cannot be read"), std::string::npos) << disk.reason;
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  auto kept = chain_of(2, 4);
  EXPECT_EQ(client.store(kept), 4U);
  EXPECT_EQ(client.load_and_check(kept), 4U);

  file.give_back();
  ASSERT_TRUE(daemon.await_log("the disk tier is back"));
  EXPECT_EQ(client.tier("disk").state, "ready");
  EXPECT_EQ(client.load_and_check(chain), 0U); // its bytes are gone, and the bytes there now are not served
  auto fresh = chain_of(3, 4);
  EXPECT_EQ(client.store(fresh), 4U);
  occupy(client, 300, objects_in(32 * mebibyte));
  EXPECT_EQ(client.load_and_check(fresh), 4U);
  EXPECT_EQ(daemon.terminate(), 0);
}

/// A file system that fills up soon.
class small_file_system {
 public:
  small_file_system() { mounted_ = ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=72m") == 0; }
  ~small_file_system() {
    if (mounted_)
      ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return folder_.path(); }
  std::string filler() const { return path() + "/filler"; }
  /// Fills it with another file.
  void fill() {
    unique_fd fd(::open(filler().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    std::vector<char> bytes(mebibyte);
    while (::write(fd.get(), bytes.data(), bytes.size()) > 0) {
    }
  }

 private:
  temporary_folder folder_;
  bool mounted_ = false;
};

TEST(DiskFailure, AFileSystemWithoutSpaceEndsWritingUntilThereIsSomeAgain) {
  small_file_system small;
  if (!small.mounted())
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte, .state_dir = small.path()});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  disk_file file(small.path());
  if (!file.punch())
    GTEST_SKIP() << "this file system cannot give space of a file back";
  small.fill();
  auto chain = chain_of(1, 4);
  EXPECT_EQ(client.store(chain), 4U);
  ASSERT_TRUE(daemon.await_log("the disk tier is degraded"));
  auto disk = client.tier("disk");
  EXPECT_EQ(disk.state, "degraded");
  EXPECT_NE(disk.reason.find("cannot be written"), std::string::npos) << disk.reason;
  EXPECT_EQ(client.load_and_check(chain), 4U); // loaded from host memory

  ASSERT_EQ(::unlink(small.filler().c_str()), 0);
  // The pause ends by itself; the next store is the trial.
  for (uint64_t seed = 10; !daemon.has_logged("the disk tier is back"); ++seed) {
    ASSERT_LT(seed, 100'000U);
    client.store(chain_of(seed, 1));
  }
  EXPECT_EQ(client.tier("disk").state, "ready");
  auto fresh = chain_of(2, 4);
  client.store(fresh);
  occupy(client, 1'000'000, objects_in(32 * mebibyte));
  EXPECT_EQ(client.load_and_check(fresh), 4U);
}

} // namespace
} // namespace terrace::e2e
