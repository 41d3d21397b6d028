#include "gpu/cufile/owners.hpp"

#include "cufile_fixture.hpp"

namespace terrace::cufile {
namespace {

using CufileOwners = CufileTest;

std::vector<std::byte> some_bytes(size_t bytes) {
  std::vector<std::byte> made(bytes);
  fill(made, 7);
  return made;
}

TEST_F(CufileOwners, AFileIsReadIntoMemoryOfTheDevice) {
  auto bytes = some_bytes(64 << 10);
  direct_file on_disk(bytes);
  auto session = open_session();
  auto memory = buffer::make(session, allocation::make(home, 64 << 10).value()).value();
  auto opened = file::open(session, on_disk.descriptor());
  ASSERT_TRUE(opened) << opened.error().text;
  file moved;
  moved = std::move(*opened);
  ASSERT_TRUE(moved.read(memory.range().address, 8192, 32 << 10, 4096));
  auto found = read_back(memory.range().address + 8192, 32 << 10);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), bytes.begin() + 4096));
}

TEST_F(CufileOwners, AShortReadGoesOn) {
  auto bytes = some_bytes(64 << 10);
  direct_file on_disk(bytes);
  auto session = open_session();
  auto memory = buffer::make(session, allocation::make(home, 64 << 10).value()).value();
  auto opened = file::open(session, on_disk.descriptor()).value();
  sim.fail("cuFileRead", static_cast<cuda::status>(9999), 0, 2);
  ASSERT_TRUE(opened.read(memory.range().address, 0, 64 << 10, 0));
  EXPECT_EQ(sim.calls("cuFileRead"), 3u);
  EXPECT_EQ(read_back(memory.range().address, 64 << 10), bytes);
}

TEST_F(CufileOwners, FailedReadsHaveTheirReason) {
  direct_file on_disk(some_bytes(8192));
  auto session = open_session();
  auto memory = buffer::make(session, allocation::make(home, 64 << 10).value()).value();
  auto opened = file::open(session, on_disk.descriptor()).value();
  auto read = [&](uint64_t bytes) { return opened.read(memory.range().address, 0, bytes, 0).error().text; };
  sim.fail("cuFileRead", cuda::status::invalid_value, 0, 1);
  EXPECT_EQ(read(8192), "cuFileRead: Input/output error");
  sim.fail("cuFileRead", code(op_error::internal_error), 0, 1);
  EXPECT_EQ(read(8192), "cuFileRead: error 5030 of cuFile");
  EXPECT_EQ(read(16384), "cuFileRead: the file ends at 8192");
}

TEST_F(CufileOwners, WhatCannotBeReadDirectlyIsRefused) {
  struct wanted {
    const char* function;
    op_error code;
    const char* text;
  };
  for (const wanted& each : {wanted{"cuFileDriverOpen", op_error::driver_not_initialized,
                                    "cuFileDriverOpen: error 5001 of cuFile, nvidia-fs is not loaded"},
                             wanted{"cuFileDriverGetProperties", op_error::internal_error,
                                    "cuFileDriverGetProperties: error 5030 of cuFile"}}) {
    sim.fail(each.function, code(each.code), 0, 1);
    auto opened = session::open(cufile_, in_context());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().text, each.text);
  }
  auto session = open_session();
  direct_file on_disk(some_bytes(4096));
  sim.fail("cuFileHandleRegister", code(op_error::io_not_supported), 0, 1);
  auto refused = file::open(session, on_disk.descriptor());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unsupported);
  auto buffered = file::open(session, unique_fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  ASSERT_FALSE(buffered);
  EXPECT_EQ(buffered.error().text,
            "cuFileHandleRegister: error 5020 of cuFile, the file is not open for O_DIRECT");
  sim.fail("cuFileBufRegister", code(op_error::internal_error), 0, 1);
  EXPECT_FALSE(buffer::make(session, allocation::make(home, 4096).value()));
}

TEST_F(CufileOwners, CompatibilityModeCountsAsNotSupported) {
  sim.fail("cuFileSetParameterBool", code(op_error::internal_error), 0, 2);
  auto opened = session::open(cufile_, in_context());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::unsupported);
  EXPECT_TRUE(opened.error().text.starts_with("cuFile may read through host memory")) << opened.error().text;
  EXPECT_EQ(sim.calls("cuFileDriverClose"), 1u) << "it is given back";
  EXPECT_TRUE(open_session()) << "where it can be switched off, it is";
}

// ---- the simulation's rules ----

TEST_F(CufileOwners, RegisteredMemoryIsNotFreed) {
  auto session = open_session();
  auto memory = allocation::make(home, 4096).value();
  const void* address = reinterpret_cast<const void*>(memory.get().address);
  ASSERT_EQ(home->within([&] { return cufile_->api().BufRegister(address, 4096, 0); }).code,
            op_error::success);
  memory.reset();
  home->within([&] { return cufile_->api().BufDeregister(address); });
  session = nullptr;
  expect_broken({"cuMemFree: memory that a stream still uses"});
}

TEST_F(CufileOwners, ReadsStayInTheirMemoryAndInWholeBlocks) {
  direct_file on_disk(some_bytes(8192));
  auto session = open_session();
  auto opened = file::open(session, on_disk.descriptor()).value();
  auto memory = buffer::make(session, allocation::make(home, 8192).value()).value();
  EXPECT_FALSE(opened.read(memory.range().address, 4096, 8192, 0));
  EXPECT_FALSE(opened.read(memory.range().address, 0, 4096, 512));
  EXPECT_FALSE(opened.read(memory.range().address + 4096, 0, 4096, 0));
  memory = {};
  opened = {};
  session = nullptr;
  expect_broken({"cuFileRead: beyond the registered memory",
                 "cuFileRead: not in whole blocks, which the real one copies",
                 "cuFileRead: memory that is not registered, which the real one copies"});
}

TEST_F(CufileOwners, FilesAreGivenBackBeforeTheyAreClosed) {
  auto session = open_session();
  direct_file on_disk(some_bytes(4096));
  auto descriptor = on_disk.descriptor();
  file_descriptor wanted;
  wanted.of.fd = descriptor.get();
  file_handle handle = nullptr;
  ASSERT_EQ(cufile_->api().HandleRegister(&handle, &wanted).code, op_error::success);
  EXPECT_EQ(cufile_->api().HandleRegister(&handle, &wanted).code, op_error::handle_already_registered);
  descriptor.reset();
  cufile_->api().HandleDeregister(handle);
  cufile_->api().HandleDeregister(handle);
  session = nullptr;
  expect_broken(
      {"cuFileHandleDeregister: the file was closed before", "cuFileHandleDeregister: twice, or no handle"});
}

TEST_F(CufileOwners, TheLibraryIsClosedOnce) {
  auto session = open_session();
  EXPECT_EQ(cufile_->api().DriverOpen().code, op_error::driver_already_open);
  session = nullptr;
  cufile_->api().DriverClose();
  expect_broken({"cuFileDriverClose: twice"});
}

} // namespace
} // namespace terrace::cufile
