// Tests with how many calls of the driver a part is copied.
#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/cuda_engine.hpp"

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

  void open(cuda_device_options options = {}) {
    dev = make_cuda_device(loaded, loaded->devices().value().front().uuid, options).value();
    region = dev->allocate(bytes).value();
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

TEST(Plane, HasManyRowsThatAreNotTooFarApart) {
  EXPECT_TRUE(is_plane(4, 512, pitch_max));
  EXPECT_FALSE(is_plane(3, 512, 512));
  EXPECT_FALSE(is_plane(4, 512, pitch_max + 1));
  EXPECT_FALSE(is_plane(4, pitch_max + 1, 512));
}

/// A step that is kept for a later report must not be kept behind a wait, which may be long.
TEST_F(CopyCalls, WhatIsBeforeAWaitIsReportedBeforeItEnds) {
  open();
  auto page = std::make_shared<const generation_page>(generation_page::make(1).value());
  auto attached = dev->attach(page).value();
  auto completions = completion_queue::make().value();
  auto engine = dev->make_engine(completions).value();
  copy_part small{{{0, 0, 512, 0, 0, 1}}, {}};
  copy_engine::step copy{
      .ticket = 1, .request = 1, .region = region.get(), .object = arena.get(), .part = &small};
  copy_engine::step wait{.ticket = 2, .request = 2, .page = attached.get(), .await = generation{0, 1}};
  ASSERT_TRUE(engine->issue(copy));
  ASSERT_TRUE(engine->issue(wait));
  pollfd watched{completions->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, 60'000), 1) << "the copy is not reported";
  EXPECT_EQ(completions->take().size(), 1U);
  page->advance({0, 1});
  ASSERT_TRUE(engine->flush());
  ASSERT_EQ(::poll(&watched, 1, 60'000), 1);
  EXPECT_EQ(completions->take().front().ticket, 2U);
}

} // namespace
} // namespace terrace::gpu
