// Resizes volumes, and dies at every step of it.
#include "storage/volume_resize.hpp"

#include "simulated_device.hpp"
#include "storage/object_check.hpp"
#include "storage/offline_volume.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stored_objects.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace terrace {
namespace volume_resize_test {

constexpr uint64_t mebibyte = 1 << 20;

using chunks = std::set<uint64_t>;

/// Returns the chunks of all intact objects, each with the bytes that were stored. Every object that is found
/// must be intact.
chunks intact_chunks(simulated_device& device) {
  auto is = inspect(device);
  EXPECT_TRUE(is) << is.error().text;
  chunks intact;
  if (!is)
    return intact;
  object_checker checker(device, is->block, 64 << 10);
  for (const index_record& object : is->found.objects) {
    auto found = checker.check(object, test::fingerprint_of(object.space));
    EXPECT_EQ(found.state, stored_state::intact) << found.why;
    intact.insert(test::chunk_of(object.chunk));
  }
  return intact;
}

/// A volume of that size that is full up to its last block.
struct filled_volume {
  explicit filled_volume(uint64_t capacity_bytes, uint32_t payload_bytes = 30'000)
      : device(std::make_unique<simulated_device>(0)), volume(*device, capacity_bytes) {
    uint64_t step = physical_bytes_for(payload_bytes);
    for (uint64_t n = 0; n < volume.arena_bytes() / step; ++n) {
      volume.add(1 + n % 3, n, payload_bytes);
      if (n % 20 == 0)
        volume.checkpoint();
    }
  }
  chunks all() const {
    chunks list;
    for (const auto& [offset, object] : volume.objects())
      list.insert(test::chunk_of(object.chunk));
    return list;
  }
  /// Frees every n-th extent.
  void thin(uint64_t n) {
    auto objects = volume.objects();
    for (const auto& [offset, object] : objects)
      if (test::chunk_of(object.chunk) % n != 0)
        volume.remove(object);
  }

  std::unique_ptr<simulated_device> device;
  test::volume_builder volume;
};

void expect_layout_for(simulated_device& device, uint64_t capacity_bytes) {
  auto is = inspect(device);
  ASSERT_TRUE(is) << is.error().text;
  EXPECT_EQ(is->block.capacity_bytes, capacity_bytes);
  EXPECT_EQ(is->block.layout, layout_for(capacity_bytes));
  EXPECT_EQ(is->file_bytes, capacity_bytes);
  EXPECT_EQ(is->problems(), 0u);
}

TEST(StoreResize, GrowingKeepsEveryObjectAndMakesRoomForTheIndex) {
  filled_volume of(4 * mebibyte);
  auto done = resize_volume(*of.device, {.capacity_bytes = 64 * mebibyte});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_GT(done->moved.objects, 0u) << "the first ones lay where the index is now";
  EXPECT_EQ(done->kept.objects, of.all().size());
  EXPECT_EQ(done->dropped.objects, 0u);
  expect_layout_for(*of.device, 64 * mebibyte);
  EXPECT_EQ(intact_chunks(*of.device), of.all());
}

TEST(StoreResize, ShrinkingMovesWhatHasRoom) {
  filled_volume of(64 * mebibyte, 300'000);
  of.thin(4);
  auto done = resize_volume(*of.device, {.capacity_bytes = 32 * mebibyte});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_GT(done->moved.objects, 0u);
  expect_layout_for(*of.device, 32 * mebibyte);
  EXPECT_EQ(intact_chunks(*of.device), of.all());
}

TEST(StoreResize, RefusesToDropObjectsAndChangesNothing) {
  filled_volume of(8 * mebibyte);
  std::vector<std::byte> before(of.device->bytes().begin(), of.device->bytes().end());
  auto done = resize_volume(*of.device, {.capacity_bytes = 2 * mebibyte});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errc::no_space);
  EXPECT_NE(done.error().text.find("nothing was changed"), std::string::npos) << done.error().text;
  EXPECT_TRUE(std::ranges::equal(of.device->bytes(), before));
}

TEST(StoreResize, DropsTheOldestWhenItMay) {
  filled_volume of(8 * mebibyte);
  auto plan = plan_resize(*of.device, 2 * mebibyte);
  ASSERT_TRUE(plan) << plan.error().text;
  auto done = resize_volume(*of.device, {.capacity_bytes = 2 * mebibyte, .drop = true});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->dropped, plan->dropped);
  EXPECT_EQ(done->kept, plan->kept);
  EXPECT_EQ(done->kept.objects + done->dropped.objects, of.all().size());
  expect_layout_for(*of.device, 2 * mebibyte);
  EXPECT_EQ(intact_chunks(*of.device).size(), done->kept.objects);
}

TEST(StoreResize, GoesThereAndBack) {
  filled_volume of(4 * mebibyte, 9000);
  for (uint64_t capacity : {5 * mebibyte, 200 * mebibyte, 6 * mebibyte, 7 * mebibyte, 5 * mebibyte}) {
    auto done = resize_volume(*of.device, {.capacity_bytes = capacity});
    ASSERT_TRUE(done) << done.error().text;
    expect_layout_for(*of.device, capacity);
    EXPECT_EQ(intact_chunks(*of.device), of.all());
  }
}

TEST(StoreResize, ToTheSameSizeDoesNothing) {
  filled_volume of(4 * mebibyte);
  uint64_t operations = of.device->operations();
  auto done = resize_volume(*of.device, {.capacity_bytes = 4 * mebibyte + 4095});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(of.device->operations(), operations);
  EXPECT_EQ(done->before, done->after);
}

TEST(StoreResize, GivesTheIndexOfTheSameFileMoreOrLessRoom) {
  filled_volume of(4 * mebibyte, 9000);
  for (uint64_t objects : {3000, 600, 2000}) {
    SCOPED_TRACE(objects);
    auto done = resize_volume(*of.device, {.capacity_bytes = 4 * mebibyte, .objects = objects, .drop = true});
    ASSERT_TRUE(done) << done.error().text;
    auto is = inspect(*of.device);
    ASSERT_TRUE(is);
    EXPECT_EQ(is->block.layout, layout_for(4 * mebibyte, objects));
    EXPECT_EQ(is->problems(), 0u);
    EXPECT_EQ(intact_chunks(*of.device).size(), done->kept.objects);
  }
}

TEST(StoreResize, RefusesAnIndexOfMoreThanAQuarter) {
  filled_volume of(4 * mebibyte);
  auto done = resize_volume(*of.device, {.capacity_bytes = 4 * mebibyte, .objects = 20'000});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errc::bad_request);
  EXPECT_NE(done.error().text.find("an index of 20000 objects takes more than a quarter of 4194304 bytes"),
            std::string::npos)
      << done.error().text;
}

TEST(StoreResize, MakesAFileWholeThatWasCut) {
  filled_volume of(4 * mebibyte);
  ASSERT_TRUE(of.device->resize(3 * mebibyte));
  auto done = resize_volume(*of.device, {.capacity_bytes = 4 * mebibyte});
  ASSERT_TRUE(done) << done.error().text;
  expect_layout_for(*of.device, 4 * mebibyte);
}

TEST(StoreResize, LeavesOutWhatCannotBeRead) {
  filled_volume of(4 * mebibyte);
  of.device->make_unreadable(of.volume.block().layout.extents_begin + 4096);
  auto done = resize_volume(*of.device, {.capacity_bytes = 64 * mebibyte});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->unreadable.objects, 1u);
  EXPECT_EQ(done->kept.objects + 1, of.all().size());
  EXPECT_EQ(intact_chunks(*of.device).size() + 1, of.all().size());
}

TEST(StoreResize, RefusesCapacitiesThatNoStoreHas) {
  filled_volume of(4 * mebibyte);
  for (uint64_t capacity : {uint64_t{0}, mebibyte - 1, UINT64_MAX})
    EXPECT_EQ(resize_volume(*of.device, {.capacity_bytes = capacity}).error().code, errc::bad_request);
  simulated_device empty(0);
  EXPECT_EQ(plan_resize(empty, 4 * mebibyte).error().code, errc::not_found);
}

struct resizing_case {
  const char* name;
  uint64_t from;
  uint64_t to;
  uint64_t thin; ///< keep every n-th object
  bool drop;
};

class StoreResizeCrash : public ::testing::TestWithParam<resizing_case> {};

/// At every write, sync and resize the process dies, or the machine dies and loses all or some of what was not synced.
/// After every single step the volume is there with all objects that have room; and resizing again completes it.
TEST_P(StoreResizeCrash, LosesNothingWhereverItDies) {
  const resizing_case& how = GetParam();
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 dice(seed);
  chunks expected;
  {
    filled_volume of(how.from);
    of.thin(how.thin);
    ASSERT_TRUE(resize_volume(*of.device, {.capacity_bytes = how.to, .drop = how.drop}));
    expected = intact_chunks(*of.device);
  }
  bool finished = false;
  for (uint64_t step = 0; !finished && !HasFailure(); ++step) {
    for (double lost : {0.0, 0.5, 1.0}) {
      filled_volume of(how.from);
      of.thin(how.thin);
      of.device->fail_after(step);
      finished = resize_volume(*of.device, {.capacity_bytes = how.to, .drop = how.drop}).has_value();
      of.device->crash({.lost = lost}, dice);
      chunks left = intact_chunks(*of.device);
      if (lost == 0) {
        EXPECT_EQ(inspect(*of.device)->problems(), 0u) << "a kill leaves no damage; step " << step;
      }
      EXPECT_TRUE(std::ranges::includes(left, expected)) << left.size() << " left after step " << step;
      auto again = resize_volume(*of.device, {.capacity_bytes = how.to, .drop = how.drop});
      ASSERT_TRUE(again) << again.error().text;
      EXPECT_EQ(intact_chunks(*of.device), expected);
      expect_layout_for(*of.device, how.to);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    StoreResize, StoreResizeCrash,
    ::testing::Values(resizing_case{"growing", 2 * mebibyte, 12 * mebibyte, 1, false},
                      resizing_case{"growing_a_little", 4 * mebibyte, 5 * mebibyte, 1, false},
                      resizing_case{"shrinking", 8 * mebibyte, 3 * mebibyte, 4, false},
                      resizing_case{"shrinking_and_dropping", 6 * mebibyte, 2 * mebibyte, 1, true}),
    [](const auto& of) { return std::string(of.param.name); });

} // namespace volume_resize_test
} // namespace terrace
