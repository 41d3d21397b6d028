#include "gpu/device.hpp"

#include "cufile_fixture.hpp"
#include "gpu/cuda/cuda_memory.hpp"
#include "gpu/cufile/cuda_disk_reader.hpp"
#include "gpu/host/host_engine.hpp"
#include "gpu/kernels/kernel_image.hpp"
#include "index/payload_checksum.hpp"

#include <future>

namespace terrace::gpu {
namespace {

using namespace terrace::cufile;

constexpr uint64_t reader_bytes = 1 << 20;

/// Objects on disk one after the other, and what the index says about them.
struct objects_on_disk {
  std::vector<std::byte> bytes;
  std::vector<disk_extent> extents;

  void add(uint64_t payload_bytes) {
    object_header header;
    header.identity.generation = extents.size() + 1;
    header.identity.chunk = digest::from(std::span<const uint8_t>(std::array<uint8_t, 32>{1, 2, 3}));
    header.payload_bytes = payload_bytes;
    header.physical_bytes = physical_bytes_for(payload_bytes);
    std::vector<std::byte> payload(payload_bytes);
    fill(payload, payload_bytes);
    header.payload_checksum = payload_checksum(payload);
    uint64_t at = bytes.size();
    bytes.resize(at + header.physical_bytes);
    encode(header, std::span<std::byte, object_header_bytes>(bytes.data() + at, object_header_bytes));
    std::copy(payload.begin(), payload.end(),
              bytes.begin() + static_cast<ptrdiff_t>(at + object_header_bytes));
    uint64_t in_slot = extents.empty() ? 0 : extents.back().at + extents.back().bytes;
    extents.push_back({1, at, header.physical_bytes, in_slot, {header.identity, payload_bytes}});
  }
};

class DiskReader : public CufileTest {
 protected:
  void SetUp() override {
    if (sums_image().empty())
      GTEST_SKIP() << "built without the toolkit";
    CufileTest::SetUp();
    for (uint64_t payload_bytes : {4096, 300, 50'001, 241, 12'345})
      objects_.add(payload_bytes);
  }
  void TearDown() override {
    reader_ = nullptr;
    if (!IsSkipped())
      CufileTest::TearDown();
  }
  void open() {
    auto made = make_cuda_disk_reader(in_context(), reader_bytes);
    ASSERT_TRUE(made) << made.error().text;
    reader_ = *made;
  }
  result<void> add_file() {
    std::promise<result<void>> added;
    direct_file on_disk(objects_.bytes);
    reader_->add_file(1, on_disk.descriptor(), [&](result<void> how) { added.set_value(std::move(how)); });
    return added.get_future().get();
  }
  read_batch read(uint64_t slot = 2) {
    std::promise<read_batch> over;
    reader_->read(slot, objects_.extents, [&](read_batch how) { over.set_value(std::move(how)); });
    return over.get_future().get();
  }

  objects_on_disk objects_;
  std::shared_ptr<disk_reader> reader_;
};

TEST_F(DiskReader, BringsObjectsIntoTheirSlotAndVerifiesThem) {
  open();
  ASSERT_TRUE(add_file());
  auto batch = read();
  EXPECT_EQ(batch.failure.code, errc::ok) << batch.failure.text;
  EXPECT_EQ(batch.good, 0b11111u) << batch.why;
  auto& staging = dynamic_cast<cuda_memory&>(*reader_->staging());
  EXPECT_EQ(read_back(staging.address() + 2 * reader_->slot_bytes(), objects_.bytes.size()), objects_.bytes);
  EXPECT_FALSE(staging.writable());
}

TEST_F(DiskReader, FindsEveryDamage) {
  struct damage {
    size_t object;
    uint64_t at;
  };
  const auto intact = objects_.bytes;
  open();
  for (const damage& each : {damage{0, 17}, damage{1, 4096 + 299}, damage{2, 4096 + 50'000}, damage{3, 4096},
                             damage{4, 4096 + 12'344 - 64}, damage{2, 4096 + 1024}}) {
    objects_.bytes = intact;
    objects_.bytes[objects_.extents[each.object].file_offset + each.at] ^= std::byte{4};
    ASSERT_TRUE(add_file());
    auto batch = read();
    EXPECT_EQ(batch.good, 0b11111u & ~(1u << each.object)) << each.object << ", " << each.at;
    EXPECT_EQ(batch.why, "an object's header or checksum is not the expected one");
  }
}

TEST_F(DiskReader, AnotherObjectIsNotTheExpectedOne) {
  open();
  ASSERT_TRUE(add_file());
  objects_.extents[1].expected.identity.generation = 77;
  objects_.extents[2].expected.payload_bytes -= 1;
  objects_.extents[3].expected.identity.epoch = 3;
  objects_.extents[4].expected.identity.space[0] = 1;
  EXPECT_EQ(read().good, 0b1u);
}

TEST_F(DiskReader, WhatCannotBeReadFailsAlone) {
  open();
  ASSERT_TRUE(add_file());
  sim.fail("cuFileRead", cuda::status::invalid_value, 0, 2);
  auto batch = read();
  EXPECT_EQ(batch.failure.code, errc::ok);
  EXPECT_EQ(__builtin_popcountll(batch.good), 3);
  EXPECT_EQ(batch.why, "cuFileRead: Input/output error");
  sim.fail("cuFileRead", cuda::status::invalid_value, 0, 5);
  EXPECT_EQ(read().good, 0u);
  EXPECT_EQ(read().good, 0b11111u) << "the next read is another one";
}

TEST_F(DiskReader, TellsWhatTheLibraryCouldNotReadFromWhatIsDamaged) {
  objects_.bytes[objects_.extents[1].file_offset] ^= std::byte{4};
  open();
  ASSERT_TRUE(add_file());
  auto batch = read();
  EXPECT_EQ(batch.good, 0b11101u);
  EXPECT_EQ(batch.unread, 0u);
  sim.fail("cuFileRead", cuda::status::invalid_value, 0, 5);
  batch = read();
  EXPECT_EQ(batch.good, 0u);
  EXPECT_EQ(batch.unread, 0b11111u);
}

TEST_F(DiskReader, WaitsForWhatItHasBegunAlsoIfTheRestFails) {
  open();
  ASSERT_TRUE(add_file());
  sim.fail("cuMemcpyAsync", cuda::status::invalid_value, 1, 1);
  auto before = sim.calls("cuStreamSynchronize");
  auto batch = read();
  EXPECT_NE(batch.failure.code, errc::ok);
  EXPECT_EQ(sim.calls("cuStreamSynchronize"), before + 1) << "the first header's copy is over";
  EXPECT_EQ(sim.calls("cuLaunchKernel"), 0u);
  EXPECT_EQ(read().good, 0b11111u);
}

TEST_F(DiskReader, AFileThatIsNotOpenIsNotRead) {
  open();
  auto batch = read();
  EXPECT_EQ(batch.good, 0u);
  EXPECT_EQ(batch.unread, 0u) << "this is no failure of the library";
  EXPECT_EQ(batch.why, "a read of a file that is not open");
}

TEST_F(DiskReader, ReadsBesideTheirSlotAreRefused) {
  open();
  ASSERT_TRUE(add_file());
  const auto good = objects_.extents;
  auto refused = [&](auto change, uint64_t slot = 0) {
    objects_.extents = good;
    change(objects_.extents);
    return read(slot).failure.code == errc::bad_request;
  };
  EXPECT_TRUE(refused([](auto& all) { all[0].at = 512; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].file_offset = 512; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].bytes -= 1; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].at = reader_bytes / 4; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].at = UINT64_MAX / 4096 * 4096; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].bytes = reader_bytes; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].expected.payload_bytes = 240; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].expected.payload_bytes = 4097; }));
  EXPECT_TRUE(refused([](auto& all) { all.clear(); }));
  EXPECT_TRUE(refused([](auto& all) { all.resize(disk_reader::extents_max + 1, all[0]); }));
  EXPECT_TRUE(refused([](auto&) {}, 4));
  EXPECT_FALSE(refused([](auto&) {}));
}

TEST_F(DiskReader, SlotsAreReadAtTheSameTime) {
  open();
  ASSERT_TRUE(add_file());
  std::vector<std::promise<read_batch>> over(disk_reader::slots);
  for (uint64_t slot = 0; slot < disk_reader::slots; ++slot)
    reader_->read(slot, objects_.extents,
                  [&, slot](read_batch how) { over[slot].set_value(std::move(how)); });
  for (auto& each : over)
    EXPECT_EQ(each.get_future().get().good, 0b11111u);
}

TEST_F(DiskReader, ReadsDoNotWaitForFilesThatAreBeingOpened) {
  open();
  ASSERT_TRUE(add_file());
  sim.hang_all("cuFileHandleRegister");
  direct_file on_disk(objects_.bytes);
  constexpr uint64_t files = 16;
  std::vector<std::promise<result<void>>> added(files);
  for (uint64_t i = 0; i < files; ++i)
    reader_->add_file(2 + i, on_disk.descriptor(),
                      [&, i](result<void> how) { added[i].set_value(std::move(how)); });
  EXPECT_EQ(read().good, 0b11111u);
  sim.release();
  for (auto& each : added)
    EXPECT_TRUE(each.get_future().get());
}

TEST_F(DiskReader, ALostDeviceIsToldOf) {
  open();
  ASSERT_TRUE(add_file());
  sim.fail_execution(cuda::status::ecc_uncorrectable);
  EXPECT_EQ(read().failure.code, errc::gone);
  lost = true;
}

TEST_F(DiskReader, IsRefusedWithItsReason) {
  for (const char* function : {"cuModuleLoadData", "cuModuleGetFunction", "cuMemAlloc", "cuMemHostRegister",
                               "cuStreamCreateWithPriority"}) {
    sim.fail(function, cuda::status::invalid_value, 0, 1);
    EXPECT_FALSE(make_cuda_disk_reader(in_context(), reader_bytes)) << function;
  }
  for (const char* function : {"cuFileDriverOpen", "cuFileDriverGetProperties", "cuFileBufRegister"}) {
    sim.fail(function, code(op_error::platform_not_supported), 0, 1);
    auto refused = make_cuda_disk_reader(in_context(), reader_bytes);
    ASSERT_FALSE(refused) << function;
    EXPECT_EQ(refused.error().code, errc::unsupported);
  }
}

TEST(DiskReaders, TheHostDeviceHasNone) {
  auto refused = make_host_device().value()->open_disk_reader(reader_bytes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unsupported);
}

} // namespace
} // namespace terrace::gpu
