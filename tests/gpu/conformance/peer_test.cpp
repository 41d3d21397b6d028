// Memory of one GPU that another one reads.
#include "conformance/conformance_fixture.hpp"

namespace terrace::gpu {
namespace {

class PeerOnCuda : public cuda::DriverTest {
 protected:
  void SetUp() override {
    if (cuda::on_real_driver())
      GTEST_SKIP() << "needs two devices, and the simulated driver's controls";
    DriverTest::SetUp();
    auto devices = loaded->devices().value();
    cuda_device_options options;
    options.virtual_memory = true;
    first = make_cuda_device(loaded, devices.at(0).uuid, options).value();
    second = make_cuda_device(loaded, devices.at(1).uuid, options).value();
  }
  void TearDown() override {
    first = second = nullptr;
    DriverTest::TearDown();
  }
  /// Copies all of `object` into `region`, or `region` into `object`.
  static void copy(const std::shared_ptr<device>& by, direction way, std::shared_ptr<memory> region,
                   std::shared_ptr<memory> object) {
    test_stream stream(by, way);
    copy_request whole;
    whole.id = 1;
    whole.parts = {{{{0, 0, bytes, 0, 0, 1}}, {}}};
    whole.region = std::move(region);
    whole.object = std::move(object);
    ASSERT_TRUE(stream.stream->submit(std::move(whole)));
    ASSERT_FALSE(stream.wait(1).failure);
  }

  static constexpr uint64_t bytes = 1 << 16;
  std::shared_ptr<device> first, second;
};

TEST_F(PeerOnCuda, ADescriptorOfOneIsReadByTheOther) {
  auto pages = make_pages(bytes);
  cuda::fill(pages->bytes(), 5);
  auto arena = first->allocate(bytes).value();
  copy(first, direction::load, arena, first->pin(pages).value());
  auto imported = second->import(arena->share().value());
  ASSERT_TRUE(imported) << imported.error().text;
  auto region = second->allocate(bytes).value();
  copy(second, direction::load, region, *imported);
  cuda::fill(pages->bytes(), 6);
  copy(second, direction::store, region, second->pin(pages).value());
  EXPECT_TRUE(cuda::has_pattern(pages->bytes(), 5));
}

TEST_F(PeerOnCuda, WithoutAccessItIsNotMapped) {
  sim.lack_peers();
  auto arena = first->allocate(bytes).value();
  EXPECT_FALSE(second->import(arena->share().value()));
  EXPECT_TRUE(second->import(second->allocate(bytes).value()->share().value())) << "its own is";
}

} // namespace
} // namespace terrace::gpu
