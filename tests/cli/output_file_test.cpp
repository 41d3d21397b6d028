#include "captured_console.hpp"
#include "cli/output_file.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace terrace::cli {
namespace output_file_test {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(OutputFile, AppearsWhenItIsComplete) {
  test::temporary_folder folder;
  captured_console to;
  {
    auto file = output_file::open(folder / "new", to.get());
    ASSERT_TRUE(file.has_value());
    EXPECT_FALSE(file->in_place());
    ASSERT_TRUE(file->write(bytes_of("half")).has_value());
    EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  auto file = output_file::open(folder / "new", to.get());
  ASSERT_TRUE(file && file->write(bytes_of("whole")) && file->keep());
  EXPECT_EQ(test::read_file(folder / "new"), "whole");
}

TEST(OutputFile, IsWrittenInPlaceWhereItHasAnotherName) {
  test::temporary_folder folder;
  captured_console to;
  test::write_file(folder / "one", "before, and longer");
  ASSERT_EQ(::link((folder / "one").c_str(), (folder / "two").c_str()), 0);
  auto file = output_file::open(folder / "one", to.get());
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->in_place());
  ASSERT_TRUE(file->write(bytes_of("after")) && file->keep());
  EXPECT_EQ(test::read_file(folder / "two"), "after");
}

TEST(OutputFile, DashIsStandardOutput) {
  captured_console to;
  auto file = output_file::open("-", to.get());
  ASSERT_TRUE(file && file->is_standard_output());
  ASSERT_TRUE(file->write(bytes_of("text")) && file->keep());
  EXPECT_EQ(to.out(), "text");
}

TEST(OutputFile, FailuresNameThePath) {
  captured_console to;
  auto missing = output_file::open("/does/not/exist", to.get());
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().text, "/does/not/exist: cannot be written: No such file or directory");
  auto full = output_file::open("/dev/full", to.get());
  ASSERT_TRUE(full.has_value());
  auto written = full->write(bytes_of("x"));
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().text, "/dev/full: cannot be written: No space left on device");
}

} // namespace output_file_test
} // namespace terrace::cli
