// Clears that a volume did not hear of are applied when it is opened.
#include "disk_fixture.hpp"

#include "storage/pending_clears.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct PendingClear : disk_fixture {
  PendingClear() { start({.host_objects = 12, .disk_objects = 64}); }
  void every_sync_fails(bool fails) {
    ring.respond([fails](const runtime::io_request& request) -> std::optional<int32_t> {
      return fails && request.code == runtime::io_code::fsync ? std::optional<int32_t>(-EIO) : std::nullopt;
    });
  }
  void remember(const pending_clear& what) {
    auto done = pending_clears(folder).remember(disk_files(), what);
    ASSERT_TRUE(done) << done.error().text;
  }
  std::vector<pending_clear> remembered() const { return pending_clears(folder).of(disk_files()).value(); }
};

} // namespace

TEST_F(PendingClear, IsAppliedBeforeTheVolumeJoinsAndThenForgotten) {
  on_disk(0, 4);
  restart(false, [&] { remember({}); });
  EXPECT_EQ(present(disk_tier(), 0, 4), 0u);
  EXPECT_TRUE(remembered().empty());
  on_disk(10, 4);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 4), 0u);
  EXPECT_EQ(present(disk_tier(), 10, 4), 4u);
}

TEST_F(PendingClear, OfASpaceLeavesTheOthers) {
  on_disk(0, 4);
  restart(false, [&] { remember({space_fingerprint{42}}); });
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
  restart(false, [&] { remember({in->fingerprint.bytes}); });
  EXPECT_EQ(present(disk_tier(), 0, 4), 0u);
}

TEST_F(PendingClear, OfAVolumeAndAnEpochLeavesWhatWasStoredSince) {
  on_disk(0, 4);
  every_sync_fails(true);
  auto cleared = clear(disk_tier());
  every_sync_fails(false);
  EXPECT_EQ(cleared.failure.code, errc::internal);
  ASSERT_TRUE(cleared.missed);
  on_disk(10, 4);
  remember(*cleared.missed);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 4), 0u);
  EXPECT_EQ(present(disk_tier(), 10, 4), 4u);
  on_disk(20, 4);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 10, 4), 4u);
  EXPECT_EQ(present(disk_tier(), 20, 4), 4u);
}

TEST_F(PendingClear, OfAnotherVolumeIsLeftToIt) {
  on_disk(0, 4);
  restart(false, [&] { remember({std::nullopt, volume_id{{9}}, 1000}); });
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
  EXPECT_EQ(remembered().size(), 1u);
}
