#include "storage/disk/path_parts.hpp"

#include "storage/disk/path_journal.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

const std::vector<uint64_t> sizes{1000, 1000};
const path_map two{sizes};

index_changes changes_at(const std::vector<uint64_t>& offsets) {
  index_changes what;
  for (uint64_t offset : offsets) {
    index_change one;
    one.record.offset = offset;
    what.changes.push_back(one);
  }
  what.space = std::make_shared<opened_space>();
  return what;
}

volume_id volume() {
  volume_id id;
  id.bytes[3] = 9;
  return id;
}

} // namespace

TEST(PathChanges, EachPathGetsThoseOfItsObjectsInOrder) {
  auto own = divide(changes_at({10, 1500, 20, 1001}), two);
  ASSERT_EQ(own.size(), 2u);
  ASSERT_EQ(own[0].changes.size(), 2u);
  EXPECT_EQ(own[0].changes[0].record.offset, 10u);
  EXPECT_EQ(own[0].changes[1].record.offset, 20u);
  ASSERT_EQ(own[1].changes.size(), 2u);
  EXPECT_EQ(own[1].changes[0].record.offset, 1500u);
  EXPECT_TRUE(own[1].space);
}

TEST(PathChanges, APathWithoutAnyGetsNothingButSpacesThatAreGone) {
  auto what = changes_at({10});
  auto own = divide(what, two);
  EXPECT_TRUE(own[1].changes.empty());
  EXPECT_FALSE(own[1].space);
  EXPECT_TRUE(own[1].gone.empty());
  what.gone = {space_id{4}};
  own = divide(what, two);
  EXPECT_EQ(own[0].gone, what.gone);
  EXPECT_EQ(own[1].gone, what.gone);
}

TEST(PathChanges, WithOnePathAreAllItsOwn) {
  const std::vector<uint64_t> one{2000};
  auto own = divide(changes_at({10, 1500}), path_map(one));
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].changes.size(), 2u);
}

TEST(PathChanges, FailuresAreOneText) {
  std::vector<close_journal_answer> answers(3);
  EXPECT_EQ(failures_of(answers).code, errc::ok);
  answers[0].failure = {errc::internal, "a"};
  answers[2].failure = {errc::internal, "c"};
  EXPECT_EQ(failures_of(answers).text, "a; c");
}

TEST(PathChanges, AClearIsInTheHighestEpochAndMissesPathsThatFailedOrAreLeftOut) {
  std::vector<forget_answer> answers(2);
  answers[0].epoch = 4;
  answers[1].epoch = 6;
  EXPECT_EQ(sum_of(answers, volume(), false).epoch, 6u);
  EXPECT_EQ(sum_of(answers, volume(), false).missed, volume_id{});
  EXPECT_EQ(sum_of(answers, volume(), true).missed, volume());
  answers[0].failure = {errc::internal, "it hangs"};
  auto sum = sum_of(answers, volume(), false);
  EXPECT_EQ(sum.missed, volume());
  EXPECT_EQ(sum.failure.text, "it hangs");
}
