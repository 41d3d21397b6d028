#include "storage/file_lock.hpp"

#include "base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace terrace {
namespace {

class FileLock : public testing::Test {
 protected:
  unique_fd opened_again() const {
    return unique_fd(::open(("/proc/self/fd/" + std::to_string(file_.get())).c_str(), O_RDWR | O_CLOEXEC));
  }

  unique_fd file_{::memfd_create("volume", MFD_CLOEXEC)};
};

TEST_F(FileLock, IsHeldByOneAtATimeAndNamesTheHolder) {
  ASSERT_TRUE(lock_file("a/path", file_.get(), lock_kind::exclusive));
  unique_fd other = opened_again();
  for (lock_kind kind : {lock_kind::shared, lock_kind::exclusive}) {
    auto second = lock_file("a/path", other.get(), kind);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, errc::busy);
    EXPECT_NE(
        second.error().text.find("a/path: process " + std::to_string(::getpid()) + " (test_storage) has"),
        std::string::npos)
        << second.error().text;
  }
}

TEST_F(FileLock, IsSharedByThoseWhoOnlyRead) {
  ASSERT_TRUE(lock_file("a/path", file_.get(), lock_kind::shared));
  unique_fd other = opened_again();
  EXPECT_TRUE(lock_file("a/path", other.get(), lock_kind::shared));
  EXPECT_FALSE(lock_file("a/path", opened_again().get(), lock_kind::exclusive));
}

TEST_F(FileLock, EndsWithItsDescriptor) {
  {
    unique_fd first = opened_again();
    ASSERT_TRUE(lock_file("a/path", first.get(), lock_kind::exclusive));
  }
  EXPECT_TRUE(lock_file("a/path", file_.get(), lock_kind::exclusive));
  EXPECT_EQ(lock_holder(file_.get(), "/does/not/exist"), std::nullopt);
}

TEST_F(FileLock, HasNoHolderWhereNobodyHoldsIt) { EXPECT_EQ(lock_holder(file_.get()), std::nullopt); }

TEST_F(FileLock, TellsAHolderThatHasEnded) {
  struct stat is {};
  ASSERT_EQ(::fstat(file_.get(), &is), 0);
  std::string locks = (std::filesystem::temp_directory_path() / "terrace-locks-XXXXXX").string();
  unique_fd file(::mkstemp(locks.data()));
  char line[200];
  // This number is above the kernel's limit, so no process has it.
  int length = std::snprintf(
      line, sizeof line,
      "1: POSIX  ADVISORY  READ 1 0:0:1 0 EOF\n2: FLOCK  ADVISORY  WRITE 4194305 %x:%x:%lu 0 EOF\n",
      major(is.st_dev), minor(is.st_dev), static_cast<unsigned long>(is.st_ino));
  ASSERT_EQ(::write(file.get(), line, static_cast<size_t>(length)), length);
  EXPECT_EQ(lock_holder(file_.get(), locks),
            "process 4194305 (it has exited; the kernel is finishing its operations)");
  ::unlink(locks.c_str());
}

TEST_F(FileLock, SaysWhatCannotBeLocked) {
  auto locked = lock_file("a/path", -1, lock_kind::exclusive);
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().code, errc::internal);
  EXPECT_EQ(lock_holder(-1), std::nullopt);
}

} // namespace
} // namespace terrace
