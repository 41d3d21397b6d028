#include "storage/volume_device.hpp"

#include "base/unique_fd.hpp"
#include "storage/aligned_buffer.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

namespace terrace {
namespace {

TEST(FileReader, ReadsWhatTheFileHolds) {
  unique_fd file(::memfd_create("volume", MFD_CLOEXEC));
  aligned_buffer out(8192);
  out.data()[4096] = std::byte{42};
  ASSERT_EQ(::pwrite(file.get(), out.data(), out.size(), 4096), 8192);
  aligned_buffer in(4096);
  ASSERT_TRUE(file_reader(file.get()).read(8192, in.bytes()));
  EXPECT_EQ(in.data()[0], std::byte{42});
}

TEST(FileReader, SaysWhatCouldNotBeRead) {
  unique_fd file(::memfd_create("volume", MFD_CLOEXEC));
  aligned_buffer in(4096);
  auto behind = file_reader(file.get()).read(1 << 20, in.bytes());
  ASSERT_FALSE(behind);
  EXPECT_NE(behind.error().text.find("ends there"), std::string::npos) << behind.error().text;
  auto closed = file_reader(-1).read(0, in.bytes());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, errc::internal);
}

} // namespace
} // namespace terrace
