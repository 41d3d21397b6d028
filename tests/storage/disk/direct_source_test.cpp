#include "storage/disk/direct_source.hpp"

#include "index/object_header.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <optional>

using namespace terrace;
using namespace terrace::test;

namespace direct_source_test {

constexpr uint64_t payload = 4096;
const uint64_t physical = physical_bytes_for(payload);

struct DirectSource : ::testing::Test {
  temporary_folder folder;
  std::shared_ptr<const disk_paths> paths;
  std::shared_ptr<disk_service> service = std::make_shared<disk_service>(2);
  std::shared_ptr<read_meter> meter = std::make_shared<read_meter>();

  std::optional<direct_source> source(bool for_readers = true, bool with_o_direct = true) {
    auto files = extent_file::open_all({.paths = {folder / "0", folder / "1"},
                                        .capacity_bytes = 1 << 20,
                                        .direct = with_o_direct,
                                        .owner = {},
                                        .boot = {},
                                        .for_readers = for_readers});
    if (!files)
      throw std::runtime_error(files.error().text);
    paths = std::make_shared<const disk_paths>(std::move(*files));
    return std::optional<direct_source>(std::in_place, paths, service, meter);
  }
  bool direct() const { return paths->file(0)->direct(); }
  double queued() const {
    return static_cast<double>(meter->state(std::chrono::steady_clock::now()).queued_bytes);
  }
};

TEST_F(DirectSource, IsReadableWhileAllItsPathsAre) {
  auto of = source();
  if (!direct())
    GTEST_SKIP() << paths->file(0)->buffered_reason();
  unread_files by;
  EXPECT_TRUE(of->readable(by));
  service->set(1, false, false, "broken", [](bool) {});
  EXPECT_FALSE(of->readable(by));
  service->set(1, true, true, "", [](bool) {});
  EXPECT_TRUE(of->readable(by));
}

TEST_F(DirectSource, IsReadableForEachDeviceThatHasRefusedNoneOfItsFiles) {
  auto of = source();
  if (!direct())
    GTEST_SKIP() << paths->file(0)->buffered_reason();
  unread_files by, by_another;
  by.add(*paths->file(1)->for_readers());
  EXPECT_FALSE(of->readable(by));
  EXPECT_TRUE(of->readable(by_another));
  by_another.add(*paths->file(1)->for_readers());
  by.remove(*paths->file(1)->for_readers());
  EXPECT_TRUE(of->readable(by));
  EXPECT_FALSE(of->readable(by_another));
}

TEST_F(DirectSource, HasNothingToReadWithoutFilesForReaders) {
  auto of = source(false);
  EXPECT_FALSE(of->readable(unread_files()));
  EXPECT_EQ(of->refusal(), "") << "nobody asked for them";
}

TEST_F(DirectSource, TellsWhyNoDeviceMayReadIt) {
  auto of = source(true, false);
  EXPECT_FALSE(of->readable(unread_files()));
  EXPECT_EQ(of->refusal(), paths->file(0)->path() + ": O_DIRECT is turned off in the configuration");
}

TEST_F(DirectSource, TellsWhereObjectsAreAndWhatIsExpected) {
  auto of = source();
  if (!direct())
    GTEST_SKIP() << paths->file(0)->buffered_reason();
  direct_load wanted;
  wanted.space = std::make_shared<opened_space>();
  const uint64_t second = paths->map().begin(1);
  for (uint64_t offset : {uint64_t{0}, second + 4 * physical}) {
    wanted.keys.push_back(key_of(wanted.keys.size()));
    wanted.places.push_back({object_id{1}, offset, payload, physical, 7 + offset});
    wanted.copy.objects.push_back({nullptr, wanted.keys.size()});
  }
  auto made = of->request(wanted);
  ASSERT_EQ(made.files.size(), 2u);
  EXPECT_EQ(made.copy.objects.size(), 2u);
  EXPECT_EQ(made.files[0].file, paths->file(0)->for_readers());
  EXPECT_EQ(made.files[0].file_offset, paths->file(0)->extents_begin());
  EXPECT_EQ(made.files[1].file, paths->file(1)->for_readers());
  EXPECT_EQ(made.files[1].file_offset, paths->file(1)->extents_begin() + 4 * physical);
  EXPECT_EQ(made.files[1].expected.payload_bytes, payload);
  EXPECT_EQ(made.files[1].expected.identity.generation, 7 + second + 4 * physical);
  EXPECT_EQ(made.files[1].expected.identity.chunk, wanted.keys[1].chunk);
}

TEST_F(DirectSource, WhatIsReadCountsUntilItHasArrived) {
  std::vector<object_place> places(3, object_place{object_id{1}, 0, payload, physical, 1});
  {
    metered_read read(meter, places);
    EXPECT_EQ(queued(), 3 * physical);
    read.end(2);
    EXPECT_EQ(queued(), 0);
    read.end(3); // has an effect once
  }
  {
    metered_read given_up(meter, places);
    EXPECT_EQ(queued(), 3 * physical);
  }
  EXPECT_EQ(queued(), 0);
  metered_read(nullptr, places).end(1); // nobody asks
}

} // namespace direct_source_test
