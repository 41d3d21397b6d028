// Random layouts, sizes, strides and cancels, and every byte of region and objects compared with a model.
#include "conformance/conformance_fixture.hpp"

#include <algorithm>

namespace terrace::gpu {
namespace {

/// Does the same copies on plain bytes.
void apply(const copy_part& part, direction way, std::span<std::byte> region, std::span<std::byte> objects) {
  for (const auto& one : part.copies)
    for (uint64_t i = 0; i < one.count; ++i) {
      auto in_region = region.subspan(one.region_offset + i * one.region_stride, one.bytes);
      auto in_objects = objects.subspan(one.object_offset + i * one.object_stride, one.bytes);
      auto [from, to] =
          way == direction::load ? std::pair{in_objects, in_region} : std::pair{in_region, in_objects};
      std::copy(from.begin(), from.end(), to.begin());
    }
}

class LayoutTest : public DeviceConformance {
 protected:
  uint64_t below(uint64_t limit) { return random() % limit; }

  /// Makes strided copies whose destinations share no byte: groups side by side, like the K and V of a layer,
  /// or one group behind the other.
  copy_part random_part(direction way) {
    copy_part part;
    uint64_t place = below(4096);
    for (uint64_t groups = 1 + below(3); groups > 0; --groups) {
      static constexpr uint64_t units[] = {1, 2, 4, 16, 64, 256};
      auto unit = units[below(6)];
      auto bytes = unit * (1 + below(40));
      auto count = 1 + below(12);
      auto members = 1 + below(3);
      auto gap = unit * below(3);
      auto written_stride = members * bytes + gap;
      place = (place + unit - 1) / unit * unit;
      if (place + written_stride * count > region_bytes)
        break;
      for (uint64_t member = 0; member < members; ++member) {
        auto read_stride = bytes + unit * below(4);
        auto read_offset = below((region_bytes - read_stride * count) / unit) * unit;
        auto written_offset = place + member * bytes;
        if (way == direction::load)
          part.copies.push_back({written_offset, read_offset, bytes, written_stride, read_stride, count});
        else
          part.copies.push_back({read_offset, written_offset, bytes, read_stride, written_stride, count});
      }
      place += written_stride * count + below(2000);
    }
    if (part.copies.empty())
      part.copies.push_back({0, 0, 64, 0, 0, 1});
    return part;
  }

  void run(direction way) {
    copy_stream_options options;
    options.parts_in_flight_max = 1 + below(8);
    options.bytes_in_flight_max = 1 + below(1 << 18);
    fill_region(seed);
    cuda::fill(objects(), seed + 1);
    std::vector<std::byte> region_model = region_content(), objects_model(objects().begin(), objects().end());
    std::vector<copy_request> requests;
    {
      test_stream tested_stream(dev, way, options);
      for (uint64_t id = 1; id <= 60; ++id) {
        auto made = request(id, {});
        for (uint64_t parts = 1 + below(5); parts > 0; --parts)
          made.parts.push_back(random_part(way));
        requests.push_back(made);
        ASSERT_TRUE(tested_stream.stream->submit(std::move(made)));
        EXPECT_LE(tested_stream.stream->parts_in_flight(), options.parts_in_flight_max);
        if (below(4) == 0)
          tested_stream.collect();
        if (below(6) == 0)
          tested_stream.stream->cancel(1 + below(id));
      }
      for (const auto& one : requests) {
        auto end = tested_stream.wait(one.id);
        EXPECT_EQ(end.failure.has_value(), end.parts_done < one.parts.size());
        if (end.failure) {
          EXPECT_EQ(end.failure->code, errc::cancelled) << end.failure->text;
        }
        // The parts that are done are the first ones of the request, and no others are done.
        for (size_t i = 0; i < end.parts_done; ++i)
          apply(one.parts[i], way, region_model, objects_model);
      }
      EXPECT_EQ(tested_stream.stream->requests(), 0u);
      EXPECT_EQ(tested_stream.stream->bytes_in_flight(), 0u);
    }
    EXPECT_TRUE(region_content() == region_model);
    EXPECT_TRUE(std::equal(objects_model.begin(), objects_model.end(), objects().begin()));
  }
};

TEST_P(LayoutTest, LoadsMoveExactlyTheirBytes) {
  for (int round = 0; round < 4; ++round)
    run(direction::load);
}

TEST_P(LayoutTest, StoresMoveExactlyTheirBytes) {
  for (int round = 0; round < 4; ++round)
    run(direction::store);
}

// Two streams take turns only by generations: one stores, the other loads the bytes elsewhere, round after round.
TEST_P(LayoutTest, StreamsTakeTurnsByGenerations) {
  constexpr uint64_t half = region_bytes / 2, rounds = 30;
  fill_region(5);
  auto model = region_content();
  test_stream stores(dev, direction::store), loads(dev, direction::load);
  // Both streams are driven, because a stream whose wait is over has to be given its copies.
  auto wait_for = [&](uint64_t round) {
    while (!stores.ended.contains(round) || !loads.ended.contains(round)) {
      pollfd watched[] = {{stores.stream->descriptor(), POLLIN, 0}, {loads.stream->descriptor(), POLLIN, 0}};
      poll(watched, 2, -1);
      stores.collect();
      loads.collect();
    }
  };
  for (uint32_t round = 1; round <= rounds; ++round) {
    // A store takes the first half, reversed in blocks on its way, and a load takes it into the second half
    // and back into the first.
    constexpr uint64_t block = 1024, blocks = half / block;
    auto store = request(round, {{}});
    for (uint64_t i = 0; i < blocks; ++i)
      store.parts[0].copies.push_back({i * block, (blocks - 1 - i) * block, block, 0, 0, 1});
    store.parts[0].signal = generation{0, round};
    store.await = generation{1, round - 1};
    auto load = request(round, {{{half, 0, half, 0, 0, 1}}, {{0, 0, half, 0, 0, 1}}});
    load.await = generation{0, round};
    load.parts[1].signal = generation{1, round};
    // The waiting request may come first.
    ASSERT_TRUE(loads.stream->submit(std::move(load)));
    ASSERT_TRUE(stores.stream->submit(std::move(store)));
    std::vector<std::byte> reversed(half);
    for (uint64_t i = 0; i < blocks; ++i)
      std::copy_n(model.begin() + static_cast<long>(i * block), block,
                  reversed.begin() + static_cast<long>((blocks - 1 - i) * block));
    std::copy(reversed.begin(), reversed.end(), model.begin());
    std::copy(reversed.begin(), reversed.end(), model.begin() + half);
    if (round % 3 == 0)
      wait_for(round);
  }
  for (uint64_t round = 1; round <= rounds; ++round) {
    wait_for(round);
    EXPECT_FALSE(stores.ended.at(round).failure);
    EXPECT_FALSE(loads.ended.at(round).failure);
  }
  EXPECT_TRUE(region_content() == model);
}

INSTANTIATE_TEST_SUITE_P(Devices, LayoutTest, testing::ValuesIn(device_names()),
                         [](const auto& one) { return one.param; });

} // namespace
} // namespace terrace::gpu
