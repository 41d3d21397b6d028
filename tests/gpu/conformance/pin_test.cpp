// Host memory that a process may only read, pinned for loads.
#include "conformance/conformance_fixture.hpp"
#include "memory/arena.hpp"

namespace terrace::gpu {
namespace {

class PinConformance : public DeviceConformance {
 protected:
  /// Makes the arena of a daemon as another process maps it.
  std::shared_ptr<const mapping> read_only() {
    cuda::fill(std::span(owned_.data(), owned_.size()), 3);
    return std::make_shared<const mapping>(mapping::map(owned_.fd(), owned_.size(), false).value());
  }
  terrace::arena owned_ = terrace::arena::create({.bytes = 1 << 20}).value();
};

TEST_P(PinConformance, LoadsComeOutOfSealedMemory) {
  auto mapped = read_only();
  constexpr uint64_t begin = 1 << 16;
  auto pinned = dev->pin_for_reading(mapped, begin, region_bytes);
  ASSERT_TRUE(pinned) << pinned.error().text;
  EXPECT_EQ((*pinned)->bytes(), region_bytes);
  EXPECT_FALSE((*pinned)->writable());
  test_stream loads(dev, direction::load);
  auto whole = simple(1, 0, 0, region_bytes);
  whole.object = *pinned;
  ASSERT_TRUE(loads.stream->submit(std::move(whole)));
  ASSERT_FALSE(loads.wait(1).failure);
  auto content = region_content();
  EXPECT_TRUE(std::equal(content.begin(), content.end(), mapped->data() + begin));
}

TEST_P(PinConformance, EachPieceIsPinnedAlone) {
  auto mapped = read_only();
  auto first = dev->pin_for_reading(mapped, 0, 1 << 16).value();
  auto second = dev->pin_for_reading(mapped, 1 << 16, 1 << 16).value();
  first.reset();
  test_stream loads(dev, direction::load);
  auto some = simple(1, 0, 0, 1 << 16);
  some.object = second;
  ASSERT_TRUE(loads.stream->submit(std::move(some)));
  ASSERT_FALSE(loads.wait(1).failure);
  auto beyond = simple(2, 0, 1, 1 << 16);
  beyond.object = second;
  EXPECT_FALSE(loads.stream->submit(std::move(beyond)));
}

TEST_P(PinConformance, NothingIsCopiedIntoIt) {
  auto mapped = read_only();
  auto pinned = dev->pin_for_reading(mapped, 0, region_bytes).value();
  test_stream stores(dev, direction::store), loads(dev, direction::load);
  auto store = simple(1, 0, 0, region_bytes), load = store;
  store.object = pinned;
  load.region = pinned;
  EXPECT_FALSE(stores.stream->submit(std::move(store)));
  EXPECT_FALSE(loads.stream->submit(std::move(load)));
  EXPECT_FALSE(pinned->share()) << "nor passed on";
}

INSTANTIATE_TEST_SUITE_P(Devices, PinConformance, testing::ValuesIn(device_names()),
                         [](const auto& one) { return one.param; });

class PinOnCuda : public cuda::DriverTest {
 protected:
  void SetUp() override {
    if (cuda::on_real_driver())
      GTEST_SKIP() << "needs the simulated driver's controls";
    DriverTest::SetUp();
  }
};

TEST_F(PinOnCuda, ADeviceMayNotBeAbleTo) {
  sim.lack(cuda::device_attribute::read_only_host_register);
  auto properties = loaded->devices().value().front();
  EXPECT_FALSE(properties.read_only_pins);
  auto dev = make_cuda_device(loaded, properties.uuid).value();
  auto owned = terrace::arena::create({.bytes = 1 << 20}).value();
  auto mapped = std::make_shared<const mapping>(mapping::map(owned.fd(), owned.size(), false).value());
  auto pinned = dev->pin_for_reading(mapped, 0, 1 << 20);
  ASSERT_FALSE(pinned);
  EXPECT_EQ(pinned.error().code, errc::unsupported);
}

TEST_F(PinOnCuda, TheDriverMayRefuse) {
  auto dev = make_cuda_device(loaded, loaded->devices().value().front().uuid).value();
  auto owned = terrace::arena::create({.bytes = 1 << 20}).value();
  auto mapped = std::make_shared<const mapping>(mapping::map(owned.fd(), owned.size(), false).value());
  sim.fail("cuMemHostRegister", cuda::status::out_of_memory, 0, 1);
  auto pinned = dev->pin_for_reading(mapped, 0, 1 << 20);
  ASSERT_FALSE(pinned);
  EXPECT_EQ(pinned.error().code, errc::no_space);
  sim.fail("cuMemHostGetDevicePointer", cuda::status::invalid_value, 0, 1);
  EXPECT_FALSE(dev->pin_for_reading(mapped, 0, 1 << 20));
  EXPECT_TRUE(dev->pin_for_reading(mapped, 0, 1 << 20)) << "nothing of the failures is left";
}

} // namespace
} // namespace terrace::gpu
