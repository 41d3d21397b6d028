// With how many calls of the driver a part is copied.
#include "gpu/cuda/cuda_device.hpp"

#include "conformance/conformance_fixture.hpp"
#include "driver_fixture.hpp"

namespace terrace::gpu {
namespace {

class CopyCalls : public cuda::DriverTest {
 protected:
  static constexpr uint64_t bytes = 1 << 18;

  void SetUp() override {
    cuda::DriverTest::SetUp();
    if (cuda::on_real_driver())
      GTEST_SKIP() << "the driver does not count calls";
  }
  void TearDown() override {
    stream.reset();
    region = arena = nullptr;
    dev = nullptr;
    cuda::DriverTest::TearDown();
  }

  void open(cuda_device_options options = {}, uint64_t region_bytes = bytes) {
    dev = make_cuda_device(loaded, loaded->devices().value().front().uuid, options).value();
    auto made = dev->allocate(region_bytes);
    ASSERT_TRUE(made) << made.error().text;
    region = *made;
    pages = make_pages(bytes);
    arena = dev->pin(pages).value();
    stream.emplace(dev, direction::load);
  }

  void load(std::vector<strided_copy> copies) {
    copy_request request{++id, region, arena, nullptr, {}, {}};
    request.parts.push_back({std::move(copies), {}});
    ASSERT_TRUE(stream->stream->submit(std::move(request)));
    ASSERT_FALSE(stream->wait(id).failure);
  }
  std::vector<uint64_t> calls() const {
    return {sim.calls("cuMemcpy2DAsync"), sim.calls("cuMemcpyBatchAsync"), sim.calls("cuMemcpyAsync")};
  }

  uint64_t id = 0;
  std::shared_ptr<device> dev;
  std::shared_ptr<memory> region, arena;
  std::shared_ptr<const mapping> pages;
  std::optional<test_stream> stream;
};

using counts = std::vector<uint64_t>;

/// The K and the V of a block in each of its layers.
constexpr strided_copy block{0, 0, 512, 4096, 512, 64};
constexpr strided_copy pair{64 << 10, 128 << 10, 512, 4096, 512, 2};

TEST_F(CopyCalls, OneForARunOfManyPieces) {
  open();
  load({block});
  EXPECT_EQ(calls(), (counts{1, 0, 0}));
}

TEST_F(CopyCalls, OneForAllRunsOfFewPieces) {
  open();
  load({pair, {128 << 10, 0, 512, 0, 0, 1}, {192 << 10, 1024, 512, 8192, 512, 3}});
  EXPECT_EQ(calls(), (counts{0, 1, 0}));
}

TEST_F(CopyCalls, OneForEachPieceWithoutBatches) {
  sim.hide("cuMemcpyBatchAsync");
  loaded = cuda::driver::open(cuda::driver_library()).value();
  open();
  load({block, pair});
  EXPECT_EQ(calls(), (counts{1, 0, 2}));
}

/// A pitch is less than 2^31.
TEST_F(CopyCalls, ARunWhosePiecesLieTooFarApartIsABatch) {
  constexpr uint64_t far = 1ULL << 31;
  sim.reset(2, 8ULL << 30, 1); // of which hardly anything is touched
  loaded = cuda::driver::open(cuda::driver_library()).value();
  open({}, 3 * far + 4096);
  load({{0, 0, 512, far, 512, 4}});
  EXPECT_EQ(calls(), (counts{0, 1, 0}));
}

} // namespace
} // namespace terrace::gpu
