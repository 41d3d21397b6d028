#include "gpu/cufile/owners.hpp"

#include "cufile_fixture.hpp"

namespace terrace::cufile {
namespace {

using CufileLibrary = CufileTest;

TEST(CufileLibraries, AMissingOneIsToldOf) {
  auto opened = library::open("libterrace-has-none.so.0");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::unsupported);
  EXPECT_TRUE(report(opened).starts_with("no cuFile: libterrace-has-none.so.0")) << report(opened);
}

TEST(CufileLibraries, OneWithoutItsFunctionsIsRefused) {
  auto opened = library::open("libc.so.6");
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().text.starts_with("libc.so.6 lacks cuFileDriverOpen, cuFileDriverClose, "))
      << opened.error().text;
}

TEST_F(CufileLibrary, TellsItsVersion) {
  EXPECT_EQ(cufile_->version(), 1150);
  EXPECT_TRUE(report(cufile_).starts_with("cuFile 1.15;")) << report(cufile_);
}

TEST_F(CufileLibrary, ErrorsHaveTheirNumberAndMeaning) {
  EXPECT_TRUE(library::check({}, "x"));
  auto refused = library::check({op_error::io_not_supported, cuda::status::success}, "cuFileHandleRegister");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unsupported);
  EXPECT_EQ(refused.error().text,
            "cuFileHandleRegister: error 5008 of cuFile, not supported by the file system");
  auto broken = library::check({op_error::internal_error, cuda::status::out_of_memory}, "cuFileBufRegister");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, errc::internal);
  EXPECT_EQ(broken.error().text, "cuFileBufRegister: error 5030 of cuFile, 2 of CUDA");
}

} // namespace
} // namespace terrace::cufile
