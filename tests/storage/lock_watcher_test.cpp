#include "storage/file_lock.hpp"

#include <gtest/gtest.h>

#include <sys/file.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>

using namespace terrace;

namespace {

struct LockWatch : ::testing::Test {
  std::string path = std::filesystem::temp_directory_path() / ("terrace-lock-" + std::to_string(::getpid()));
  ~LockWatch() override { std::filesystem::remove(path); }

  unique_fd locked() {
    unique_fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::flock(fd.get(), LOCK_EX | LOCK_NB), 0);
    return fd;
  }
  static bool readable(const unique_fd& event, int wait_ms) {
    pollfd watched{event.get(), POLLIN, 0};
    return ::poll(&watched, 1, wait_ms) == 1;
  }
};

} // namespace

TEST_F(LockWatch, IsQuietWhileSomebodyHasTheLockAndTellsWhenNobodyHas) {
  unique_fd holder = locked();
  auto event = watch_lock(path);
  ASSERT_TRUE(event) << event.error().text;
  EXPECT_FALSE(readable(*event, 0));
  holder.reset();
  EXPECT_TRUE(readable(*event, 60'000));
  EXPECT_TRUE(locked()); // the lock is free for the next process
}

TEST_F(LockWatch, TellsAtOnceWhenNobodyHasIt) {
  locked().reset();
  auto event = watch_lock(path);
  ASSERT_TRUE(event) << event.error().text;
  EXPECT_TRUE(readable(*event, 60'000));
}

TEST_F(LockWatch, AFileThatIsNotThereIsAnError) {
  auto event = watch_lock(path + "-not-there");
  ASSERT_FALSE(event);
  EXPECT_NE(event.error().text.find("not-there"), std::string::npos);
}
