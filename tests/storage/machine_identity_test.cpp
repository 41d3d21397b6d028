#include "storage/file_lock.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace terrace {
namespace {

std::array<uint8_t, 16> read_from(const std::string& text) {
  std::string path = testing::TempDir() + "machine-id-" + std::to_string(::getpid());
  std::ofstream(path) << text;
  auto id = machine_identity(path);
  std::remove(path.c_str());
  return id;
}

TEST(MachineIdentity, IsTheFilesDigits) {
  std::array<uint8_t, 16> expected{0x0f, 0x1e};
  expected[15] = 0xab;
  EXPECT_EQ(read_from("0f1e00000000000000000000000000ab\n"), expected);
}

TEST(MachineIdentity, IsZeroWithoutASoundFile) {
  std::array<uint8_t, 16> zero{};
  EXPECT_EQ(machine_identity("/nonexistent/machine-id"), zero);
  EXPECT_EQ(read_from(""), zero);
  EXPECT_EQ(read_from("uninitialized\n"), zero);
  EXPECT_EQ(read_from("0f1e0000000000000000000000000xyz\n"), zero);
}

} // namespace
} // namespace terrace
