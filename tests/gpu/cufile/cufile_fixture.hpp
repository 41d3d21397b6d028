// Tests that run on the simulated cuFile and driver.
#pragma once

#include "driver_fixture.hpp"
#include "gpu/cufile/owners.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace terrace::cufile {

using namespace terrace::cuda;

/// A file for O_DIRECT that has these bytes, and no name.
class direct_file {
 public:
  explicit direct_file(std::span<const std::byte> bytes) {
    std::string name = "./terrace-cufile-XXXXXX"; // tmpfs may have no O_DIRECT
    unique_fd made(::mkstemp(name.data()));
    EXPECT_EQ(::pwrite(made.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(::fsync(made.get()), 0);
    fd_ = unique_fd(::open(name.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    ::unlink(name.c_str());
    if (!fd_)
      throw std::runtime_error("no O_DIRECT in the working directory");
  }
  unique_fd descriptor() const { return unique_fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)); }

 private:
  unique_fd fd_;
};

class CufileTest : public DriverTest {
 protected:
  void SetUp() override {
    SKIP_ON_REAL_DRIVER();
    DriverTest::SetUp();
    auto opened = library::open(test::simulated_cufile());
    ASSERT_TRUE(opened) << opened.error().text;
    cufile_ = *opened;
  }
  void TearDown() override {
    if (!IsSkipped())
      DriverTest::TearDown();
  }
  std::shared_ptr<const session> open_session() {
    auto opened = session::open(cufile_, in_context());
    EXPECT_TRUE(opened) << opened.error().text;
    return opened.value_or(nullptr);
  }
  /// Returns the content of the device's memory.
  std::vector<std::byte> read_back(device_pointer from, size_t bytes) {
    host_pages pages(bytes);
    auto pinned = registration::make(home, pages.bytes()).value();
    auto work = stream::make(home).value();
    EXPECT_TRUE(
        home->call("cuMemcpyAsync", home->api().MemcpyAsync, pinned.address(), from, bytes, work.get()));
    EXPECT_TRUE(work.synchronize());
    return {pages.bytes().begin(), pages.bytes().end()};
  }

  std::shared_ptr<const library> cufile_;
};

inline cuda::status code(op_error which) { return static_cast<cuda::status>(which); }

} // namespace terrace::cufile
