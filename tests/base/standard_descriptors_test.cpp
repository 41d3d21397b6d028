#include "base/unique_fd.hpp"
#include "tests/support/child_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace terrace {
namespace {

TEST(StandardDescriptors, ThoseThatWereClosedAreTakenAndStillFail) {
  test::child_process child(std::function<int(const test::child_voice&)>([](const test::child_voice&) {
    for (int fd : {0, 1, 2})
      ::close(fd);
    occupy_standard_descriptors();
    char byte = 0;
    bool read_fails = ::read(0, &byte, 1) < 0 && errno == EBADF;
    bool write_fails =
        ::write(1, &byte, 1) < 0 && errno == EBADF && ::write(2, &byte, 1) < 0 && errno == EBADF;
    return read_fails && write_fails && ::open("/dev/null", O_RDWR) > 2 ? 0 : 1;
  }));
  EXPECT_EQ(child.wait(), 0);
}

TEST(StandardDescriptors, OpenOnesStayAsTheyAre) {
  test::child_process child(std::function<int(const test::child_voice&)>([](const test::child_voice&) {
    int file = ::open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2})
      ::dup2(file, fd);
    occupy_standard_descriptors();
    return ::write(1, "x", 1) == 1 && ::write(2, "x", 1) == 1 ? 0 : 1;
  }));
  EXPECT_EQ(child.wait(), 0);
}

} // namespace
} // namespace terrace
