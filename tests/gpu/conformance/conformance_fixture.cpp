#include "conformance/conformance_fixture.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace terrace::gpu {

std::shared_ptr<const mapping> make_pages(uint64_t bytes) {
  unique_fd descriptor(memfd_create("test-pages", MFD_CLOEXEC));
  if (ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0)
    return nullptr;
  return std::make_shared<const mapping>(mapping::map(descriptor.get(), bytes, true).value());
}

void DeviceConformance::SetUp() {
  seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()) + 17;
  RecordProperty("seed", std::to_string(seed));
  random.seed(seed);
  tested = make_device_under_test(GetParam(), seed);
  if (auto why = tested->absent(); !why.empty())
    GTEST_SKIP() << why;
  auto opened = tested->open();
  ASSERT_TRUE(opened) << opened.error().text;
  dev = *opened;
  region = dev->allocate(region_bytes).value();
  pages = make_pages(objects_bytes);
  arena = dev->pin(pages).value();
  window = make_pages(region_bytes);
  window_memory = dev->pin(window).value();
  page = std::make_shared<const generation_page>(generation_page::make(slots).value());
  attached = dev->attach(page).value();
}

void DeviceConformance::TearDown() {
  attached = nullptr;
  region = arena = window_memory = nullptr;
  dev = nullptr;
  EXPECT_EQ(tested->broken_rules(), std::vector<std::string>());
  if (!lost) {
    EXPECT_EQ(tested->live(), 0u) << "something of the device was not given back";
  }
  if (HasFailure())
    std::fprintf(stderr, "again with --gtest_random_seed=%d\n",
                 testing::UnitTest::GetInstance()->random_seed());
}

copy_request DeviceConformance::request(uint64_t id, std::vector<std::vector<strided_copy>> parts) const {
  copy_request made;
  made.id = id;
  made.region = region;
  made.object = arena;
  made.page = attached;
  for (auto& copies : parts)
    made.parts.push_back({std::move(copies), {}});
  return made;
}

copy_request DeviceConformance::simple(uint64_t id, uint64_t region_offset, uint64_t object_offset,
                                       uint64_t bytes) const {
  return request(id, {{{region_offset, object_offset, bytes, 0, 0, 1}}});
}

std::vector<std::byte> DeviceConformance::region_content() {
  test_stream out(dev, direction::store);
  auto whole = simple(1, 0, 0, region_bytes);
  whole.object = window_memory;
  EXPECT_TRUE(out.stream->submit(std::move(whole)));
  EXPECT_FALSE(out.wait(1).failure);
  return {window->bytes().begin(), window->bytes().end()};
}

void DeviceConformance::fill_region(uint64_t content) {
  cuda::fill(window->bytes(), content);
  test_stream in(dev, direction::load);
  auto whole = simple(1, 0, 0, region_bytes);
  whole.object = window_memory;
  EXPECT_TRUE(in.stream->submit(std::move(whole)));
  EXPECT_FALSE(in.wait(1).failure);
}

} // namespace terrace::gpu
