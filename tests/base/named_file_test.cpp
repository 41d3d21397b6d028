#include "base/named_file.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace terrace {
namespace {

TEST(NamedFile, HasANumberOfItsOwn) {
  named_file first(unique_fd(), "a"), second(unique_fd(), "a");
  EXPECT_NE(first.number, second.number);
  EXPECT_NE(first.number, 0u);
}

TEST(NamedFile, ItsEndIsToldToAllWhoAsked) {
  int told = 0;
  auto file = std::make_shared<named_file>(unique_fd(), "a");
  file->at_end([&] { told += 1; });
  file->at_end([&] { told += 10; });
  auto other = file;
  file = nullptr;
  EXPECT_EQ(told, 0);
  other = nullptr;
  EXPECT_EQ(told, 11);
}

} // namespace
} // namespace terrace
