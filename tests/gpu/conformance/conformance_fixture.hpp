// A device with a region, objects in pinned memory, a page, and streams whose completions are collected.
#pragma once

#include "conformance/device_under_test.hpp"

#include <poll.h>

#include <map>
#include <random>

namespace terrace::gpu {

/// A stream, and the requests that have ended on it.
class test_stream {
 public:
  test_stream(const std::shared_ptr<device>& device, direction way, copy_stream_options options = {})
      : stream(copy_stream::open(device, way, options).value()) {}

  /// Takes completions until `id` has ended.
  completion wait(uint64_t id) {
    while (!ended.contains(id)) {
      pollfd watched{stream->descriptor(), POLLIN, 0};
      poll(&watched, 1, -1);
      collect();
    }
    return ended.at(id);
  }
  void collect() {
    for (auto& one : stream->drain()) {
      EXPECT_FALSE(ended.contains(one.id)) << "request " << one.id << " ended twice";
      order.push_back(one.id);
      ended[one.id] = one;
    }
  }

  std::unique_ptr<copy_stream> stream;
  std::map<uint64_t, completion> ended;
  std::vector<uint64_t> order;
};

class DeviceConformance : public testing::TestWithParam<std::string> {
 protected:
  static constexpr uint64_t region_bytes = 1 << 18;
  static constexpr uint64_t objects_bytes = 1 << 18;
  static constexpr uint32_t slots = 64;

  void SetUp() override;
  void TearDown() override;

  /// Makes a request between the region and the objects, with one part for each list of copies.
  copy_request request(uint64_t id, std::vector<std::vector<strided_copy>> parts) const;
  /// Makes a request of one part that moves `bytes` as a whole.
  copy_request simple(uint64_t id, uint64_t region_offset, uint64_t object_offset, uint64_t bytes) const;
  /// The region's bytes; a stream of their own copies them out and in.
  std::vector<std::byte> region_content();
  void fill_region(uint64_t seed);
  std::span<std::byte> objects() const { return pages->bytes(); }

  std::unique_ptr<device_under_test> tested;
  std::shared_ptr<device> dev;
  std::shared_ptr<memory> region;
  std::shared_ptr<const mapping> pages;  ///< memory of the objects
  std::shared_ptr<memory> arena;         ///< the same memory, pinned
  std::shared_ptr<const mapping> window; ///< as large as the region, to look into it
  std::shared_ptr<memory> window_memory;
  std::shared_ptr<const generation_page> page;
  std::shared_ptr<attached_page> attached;
  uint64_t seed = 0;
  std::mt19937_64 random;
  bool lost = false; ///< the test lost the device
};

#define SKIP_WITHOUT_CONTROLS()                                                                              \
  if (!tested->has_controls())                                                                               \
  GTEST_SKIP() << "a real device cannot be held or broken"

/// Makes anonymous pages.
std::shared_ptr<const mapping> make_pages(uint64_t bytes);

} // namespace terrace::gpu
