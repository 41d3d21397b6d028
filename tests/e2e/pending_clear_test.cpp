// Nothing that was cleared comes back, not even from a disk that could not be reached when it was cleared.
#include "workload.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace terrace::e2e {
namespace {

/// Both superblocks of the file, taken away for a while.
class broken_superblocks {
 public:
  explicit broken_superblocks(const std::string& file) : fd_(::open(file.c_str(), O_RDWR | O_CLOEXEC)) {
    EXPECT_EQ(::pread(fd_.get(), good_.data(), good_.size(), 0), static_cast<ssize_t>(good_.size()));
    std::array<char, 8192> bad;
    bad.fill('x');
    EXPECT_EQ(::pwrite(fd_.get(), bad.data(), bad.size(), 0), static_cast<ssize_t>(bad.size()));
  }
  void repair() {
    EXPECT_EQ(::pwrite(fd_.get(), good_.data(), good_.size(), 0), static_cast<ssize_t>(good_.size()));
    fd_.reset();
  }

 private:
  unique_fd fd_;
  std::array<char, 8192> good_{};
};

void clear_all(tester& client) {
  auto cleared = client->admin().clear(nullptr, patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
}

TEST(PendingClear, HoldsForADiskThatWasRefusedAndIsRepaired) {
  temporary_folder state;
  daemon_under_test daemon({.disk_bytes = 96 * mebibyte, .state_dir = state.path()});
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 6);
  tester(daemon.socket()).store(chain);
  ASSERT_EQ(daemon.terminate(), 0);

  broken_superblocks broken(state / "terrace.extents");
  daemon.start();
  ASSERT_TRUE(daemon.await_log("is off"));
  {
    tester client(daemon.socket());
    client.store(chain);
    clear_all(client);
    EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  }
  daemon.kill(); // the clear was durable when it was answered
  broken.repair();

  daemon.start();
  ASSERT_TRUE(daemon.await_log("0 objects found"));
  auto fresh = chain_of(2, 3);
  {
    tester client(daemon.socket());
    EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
    EXPECT_EQ(client.store(fresh), 3U);
  }
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("3 objects found")); // the clear is applied once
  EXPECT_EQ(tester(daemon.socket()).load_and_check(fresh), 3U);
}

TEST(PendingClear, HoldsForAFileThatAnotherProcessHadOpen) {
  temporary_folder state;
  daemon_options options{.disk_bytes = 96 * mebibyte, .state_dir = state.path()};
  daemon_under_test first(options);
  ASSERT_TRUE(first.await_log("joined"));
  auto chain = chain_of(1, 3);
  tester(first.socket()).store(chain);
  daemon_under_test second(options);
  ASSERT_TRUE(second.await_log("waits"));
  tester client(second.socket());
  clear_all(client);
  EXPECT_EQ(first.terminate(), 0);
  ASSERT_TRUE(second.await_log("0 objects found"));
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
}

TEST(PendingClear, HoldsForADiskThatWasTurnedOff) {
  temporary_folder state;
  daemon_options with_disk{.disk_bytes = 96 * mebibyte, .state_dir = state.path()};
  daemon_under_test daemon(with_disk);
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 3);
  tester(daemon.socket()).store(chain);
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure({.state_dir = state.path()});
  daemon.start();
  {
    tester client(daemon.socket());
    clear_all(client);
  }
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure(with_disk);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("0 objects found"));
  EXPECT_EQ(tester(daemon.socket()).lookup(chain).found_chunks, 0U);
}

} // namespace
} // namespace terrace::e2e
