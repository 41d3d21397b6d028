#include "base/unique_fd.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(NamedFile, HasANumberOfItsOwn) {
  named_file first(unique_fd(), "a"), second(unique_fd(), "a");
  EXPECT_NE(first.number, second.number);
  EXPECT_NE(first.number, 0u);
}

} // namespace
} // namespace terrace
