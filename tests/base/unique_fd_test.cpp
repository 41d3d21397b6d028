#include "base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace terrace {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

int any_descriptor() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(UniqueFd, ClosesAtTheEndOfItsScope) {
  int raw = any_descriptor();
  {
    unique_fd fd(raw);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(UniqueFd, HasOneOwnerThroughMoves) {
  int raw = any_descriptor();
  unique_fd first(raw);
  unique_fd second(std::move(first));
  EXPECT_FALSE(first);
  unique_fd third;
  third = std::move(second);
  EXPECT_EQ(third.get(), raw);
  EXPECT_TRUE(is_open(raw));
  EXPECT_EQ(third.release(), raw);
  EXPECT_TRUE(is_open(raw)) << "released, so nobody closes it";
  ::close(raw);
}

TEST(UniqueFd, ResetClosesTheFormerDescriptor) {
  int raw = any_descriptor();
  unique_fd fd(raw);
  fd.reset();
  EXPECT_FALSE(is_open(raw));
  EXPECT_FALSE(fd);
}

} // namespace
} // namespace terrace
