#include "storage/offline_volume.hpp"

#include "simulated_device.hpp"
#include "tests/support/stored_objects.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace volume_inspection_test {

constexpr uint64_t file_bytes = 2 << 20;

class StoreInspection : public ::testing::Test {
 protected:
  volume_inspection inspected() {
    auto is = inspect(device_);
    EXPECT_TRUE(is) << is.error().text;
    return is ? std::move(*is) : volume_inspection{};
  }

  simulated_device device_{0};
  test::volume_builder store_{device_, file_bytes};
};

TEST_F(StoreInspection, FindsIdentityObjectsAndSpaces) {
  store_.add(1, 1, 5000);
  store_.checkpoint();
  store_.add(2, 2, 100);
  store_.remove(store_.add(2, 3, 100));
  auto is = inspected();
  EXPECT_EQ(is.block, store_.block());
  EXPECT_EQ(is.file_bytes, file_bytes);
  EXPECT_EQ(is.found.objects.size(), 2u);
  EXPECT_EQ(is.found.spaces.size(), 2u);
  EXPECT_EQ(is.problems(), 0u);
  EXPECT_FALSE(is.checkpoints[0].header);
  ASSERT_TRUE(is.checkpoints[1].header);
  EXPECT_EQ(is.checkpoints[1].header->records, 2u);
  EXPECT_EQ(is.journal_blocks_live(), 3u) << "what the checkpoint does not cover";
  EXPECT_EQ(is.journal_blocks(), 16u);
}

TEST_F(StoreInspection, CountsAnObjectOfOneKeyOnce) {
  store_.add(1, 1, 5000);
  store_.add(1, 1, 5000);
  auto is = inspected();
  EXPECT_EQ(is.found.objects.size(), 1u);
  EXPECT_EQ(is.superseded, 1u);
}

TEST_F(StoreInspection, TellsWhatOfTheMetadataIsDamaged) {
  store_.add(1, 1, 5000);
  store_.checkpoint();
  device_.flip_bit(8 * superblock_bytes + 100);
  auto is = inspected();
  EXPECT_EQ(is.superblock_problems[0], "");
  EXPECT_NE(is.superblock_problems[1], "");
  EXPECT_EQ(is.problems(), 1u);
  device_.flip_bit(8 * (store_.block().layout.checkpoint_area(1) + 300));
  is = inspected();
  EXPECT_NE(is.checkpoints[1].problem, "");
  EXPECT_EQ(is.problems(), 2u);
  EXPECT_EQ(is.found.objects.size(), 1u) << "the journal has it, too";
  device_.make_unreadable(store_.block().layout.checkpoint_area(0));
  EXPECT_EQ(inspected().checkpoints[0].problem, "Input/output error");
}

TEST_F(StoreInspection, TellsThatTheFileWasCut) {
  store_.add(1, 1, 5000);
  ASSERT_TRUE(device_.resize(file_bytes / 2));
  auto is = inspected();
  EXPECT_EQ(is.arena_bytes, file_bytes / 2 - store_.block().layout.extents_begin);
  EXPECT_EQ(is.problems(), 1u);
}

TEST_F(StoreInspection, TakesOnePathOfSeveral) {
  superblock block = store_.block();
  block.path_index = 1;
  block.path_count = 2;
  ASSERT_TRUE(write_superblocks(device_, block));
  EXPECT_EQ(inspected().block.path_index, 1u);
}

TEST_F(StoreInspection, RefusesWhatIsNoStore) {
  auto refused = [&](superblock block) {
    EXPECT_TRUE(write_superblocks(device_, block));
    auto is = inspect(device_);
    return is ? std::string() : is.error().text;
  };
  superblock block = store_.block();
  block.layout.extents_begin = file_bytes;
  EXPECT_NE(refused(block).find("is inconsistent"), std::string::npos);
  simulated_device empty(0);
  auto is = inspect(empty);
  ASSERT_FALSE(is);
  EXPECT_EQ(is.error().code, errc::not_found);
}

} // namespace volume_inspection_test
} // namespace terrace
