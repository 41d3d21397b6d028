// A device that does not answer: writes to a frozen file system wait in the kernel until it is thawed.
#include "workload.hpp"

#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include <fcntl.h>
#include <unistd.h>

namespace terrace::e2e {
namespace {

/// An ext4 in a file. Needs the right to mount, and a loop device.
class own_file_system {
 public:
  own_file_system() {
    std::string image = folder_ / "image";
    unique_fd file(::open(image.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    unique_fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    if (!file || !control || ::ftruncate(file.get(), 256 * mebibyte) != 0 ||
        run({"mkfs.ext4", "-q", "-F", image}).exit_code != 0)
      return;
    device_ = "/dev/loop" + std::to_string(::ioctl(control.get(), LOOP_CTL_GET_FREE));
    loop_.reset(::open(device_.c_str(), O_RDWR | O_CLOEXEC));
    if (!loop_ || ::ioctl(loop_.get(), LOOP_SET_FD, file.get()) != 0)
      return;
    attached_ = true;
    std::filesystem::create_directory(folder_ / "mounted");
    if (::mount(device_.c_str(), path().c_str(), "ext4", 0, nullptr) != 0)
      return;
    root_.reset(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~own_file_system() {
    thaw();
    if (root_) {
      root_.reset();
      ::umount2(path().c_str(), MNT_DETACH);
    }
    if (attached_)
      ::ioctl(loop_.get(), LOOP_CLR_FD, 0);
  }
  own_file_system(const own_file_system&) = delete;
  own_file_system& operator=(const own_file_system&) = delete;

  bool mounted() const { return static_cast<bool>(root_); }
  std::string path() const { return folder_ / "mounted"; }
  bool freeze() { return frozen_ = ::ioctl(root_.get(), FIFREEZE, 0) == 0; }
  void thaw() {
    if (std::exchange(frozen_, false))
      ::ioctl(root_.get(), FITHAW, 0);
  }

 private:
  temporary_folder folder_;
  std::string device_;
  unique_fd loop_;
  unique_fd root_;
  bool attached_ = false;
  bool frozen_ = false;
};

TEST(HungDisk, TheEndSaysThatTheKernelKeepsTheProcess) {
  own_file_system disk;
  if (!disk.mounted())
    GTEST_SKIP() << "needs the right to mount a file system of its own";
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte,
                            .disk = "stall_after = \"200ms\"\n",
                            .state_dir = disk.path(),
                            .more = "",
                            .parent = "/tmp"});
  struct thawing { // destroyed before the daemon, which could not be killed otherwise
    own_file_system& disk;
    ~thawing() { disk.thaw(); }
  } thaw_first{disk};
  ASSERT_TRUE(daemon.await_log("joined"));
  ASSERT_TRUE(disk.freeze());
  tester client(daemon.socket());
  EXPECT_EQ(client.store(chain_of(1, 4)), 4U);
  ASSERT_TRUE(daemon.await_log("not completed for more than")) << "a write to a frozen file system waits";
  daemon.signal(SIGTERM);
  EXPECT_TRUE(daemon.await_log("the kernel keeps the process until it has"));
  disk.thaw();
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(HungDisk, AnEvictionThatWaitsForItGoesOnWithout) {
  own_file_system disk;
  if (!disk.mounted())
    GTEST_SKIP() << "needs the right to mount a file system of its own";
  daemon_under_test daemon({.host_bytes = 16 * mebibyte,
                            .host = "policy = \"lru\"\n",
                            .disk_bytes = 64 * mebibyte,
                            .disk = "stall_after = \"200ms\"\nadmission = \"always\"\n"
                                    "demotion = \"write_back\"\n",
                            .state_dir = disk.path(),
                            .more = "",
                            .parent = "/tmp"});
  struct thawing { // destroyed before the daemon, which could not be killed otherwise
    own_file_system& disk;
    ~thawing() { disk.thaw(); }
  } thaw_first{disk};
  ASSERT_TRUE(daemon.await_log("joined"));
  ASSERT_TRUE(disk.freeze());
  tester client(daemon.socket());
  for (uint64_t seed = 1; seed <= 6; ++seed)
    EXPECT_EQ(client.store(chain_of(seed, 8)), 8U) << "chain " << seed;
  EXPECT_TRUE(daemon.await_log("not completed for more than"));
  EXPECT_EQ(client.store(chain_of(7, 4)), 4U);
  // The victim that is being written stays, and so does its chain, because suffixes leave before prefixes.
  EXPECT_EQ(client.load_and_check(chain_of(7, 4)), 4U);
  disk.thaw();
  // The disk is tried again, and evicted objects reach it.
  uint64_t seed = 100;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(client.store(chain_of(seed, 8)), 8U);
    return client.lookup(chain_of(seed++ - 3, 8), false, on_disk).found_chunks == 8;
  }));
  EXPECT_EQ(client.load_and_check(chain_of(seed - 4, 8)), 8U);
}

} // namespace
} // namespace terrace::e2e
