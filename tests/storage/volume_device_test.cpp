#include "storage/volume_device.hpp"

#include "base/unique_fd.hpp"
#include "storage/aligned_buffer.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

namespace terrace {
namespace {

class FileDevice : public testing::Test {
 protected:
  FileDevice() {
    std::string path = (std::filesystem::temp_directory_path() / "terrace-device-XXXXXX").string();
    file_.reset(::mkstemp(path.data()));
    ::unlink(path.c_str());
    device_.emplace("a/path", file_.get());
  }
  file_device& device() { return *device_; }

  unique_fd file_;
  std::optional<file_device> device_;
};

TEST_F(FileDevice, ReadsWhatItWrote) {
  ASSERT_TRUE(device().resize(1 << 20));
  aligned_buffer out(8192), in(8192);
  out.data()[5000] = std::byte{42};
  ASSERT_TRUE(device().write(4096, out.bytes()));
  ASSERT_TRUE(device().sync());
  ASSERT_TRUE(device().read(4096, in.bytes()));
  EXPECT_EQ(in.data()[5000], std::byte{42});
}

TEST_F(FileDevice, WhatCannotBeOpenedForReadersHasItsReason) {
  auto closed = open_for_readers(-1, "a/path");
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().text, "a/path: opening it once more, for GPUs: No such file or directory");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  auto exhausted = open_for_readers(file_.get(), "a/path");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(exhausted);
  EXPECT_EQ(exhausted.error().text, "a/path: opening it once more, for GPUs: Too many open files");
}

TEST_F(FileDevice, GrowsWithZerosAndShrinks) {
  ASSERT_TRUE(device().resize(1 << 20));
  EXPECT_EQ(*device().size(), 1u << 20);
  aligned_buffer in(4096);
  in.data()[0] = std::byte{1};
  ASSERT_TRUE(device().read((1 << 20) - 4096, in.bytes()));
  EXPECT_EQ(in.data()[0], std::byte{0});
  ASSERT_TRUE(device().resize(4096));
  EXPECT_EQ(*device().size(), 4096u);
}

TEST_F(FileDevice, WithoutRoomNamesWhatIsWantedAndKeepsItsSize) {
  ASSERT_TRUE(device().resize(4096));
  auto done = device().resize(1ULL << 60);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errc::no_space);
  EXPECT_NE(done.error().text.find(" more bytes are needed"), std::string::npos) << done.error().text;
  EXPECT_EQ(*device().size(), 4096u);
}

TEST_F(FileDevice, NamesThePathInEveryError) {
  file_device closed("a/path", -1);
  aligned_buffer block(4096);
  for (const error& e : {closed.read(0, block.bytes()).error(), closed.write(0, block.bytes()).error(),
                         closed.sync().error(), closed.size().error(), closed.resize(4096).error()})
    EXPECT_EQ(e.text.rfind("a/path: ", 0), 0u) << e.text;
}

TEST_F(FileDevice, DoesNotWriteToAFileThatIsOpenForReading) {
  unique_fd reader(::open(("/proc/self/fd/" + std::to_string(file_.get())).c_str(), O_RDONLY | O_CLOEXEC));
  file_device device("a/path", reader.get());
  aligned_buffer block(4096);
  auto done = device.write(0, block.bytes());
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().text.find("writing to the volume"), std::string::npos) << done.error().text;
  EXPECT_FALSE(device.resize(1 << 20));
}

} // namespace
} // namespace terrace
