#include "memory/region_populator.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace terrace::test {
namespace {

constexpr uint64_t slice = populate_steps::slice_bytes;
constexpr uint64_t pages = slice / populate_steps::page_bytes;

/// Makes a pass over a region with `present` pages in each slice; returns the slices that it looked at.
std::vector<uint64_t> pass(populate_steps& steps, const std::vector<uint64_t>& present) {
  uint64_t all = 0;
  for (uint64_t each : present)
    all += each * populate_steps::page_bytes;
  std::vector<uint64_t> seen;
  if (!steps.begin(all))
    return seen;
  while (auto next = steps.next()) {
    seen.push_back(next->offset / slice);
    steps.add(*next, present[next->offset / slice]);
  }
  return seen;
}

using list = std::vector<uint64_t>;

TEST(PopulateSteps, LooksAtEachSliceOnceWhereEverythingExists) {
  populate_steps steps(3 * slice);
  EXPECT_EQ(pass(steps, {pages, pages, pages}), (list{0, 1, 2}));
  EXPECT_EQ(steps.new_bytes(), 3 * slice);
  EXPECT_TRUE(steps.whole());
  EXPECT_FALSE(steps.begin(3 * slice));
}

TEST(PopulateSteps, BeginsNoPassWhereNothingIsNew) {
  populate_steps steps(3 * slice);
  EXPECT_EQ(pass(steps, {0, 0, 0}), list{});
  EXPECT_EQ(pass(steps, {7, 0, 0}), list{0}); // stops when it has found all pages that exist
  EXPECT_EQ(steps.new_bytes(), 7 * populate_steps::page_bytes);
  EXPECT_EQ(pass(steps, {7, 0, 0}), list{});
  EXPECT_FALSE(steps.whole());
}

TEST(PopulateSteps, GoesOnWhereItEndedAndSkipsWhatIsWhole) {
  populate_steps steps(4 * slice);
  EXPECT_EQ(pass(steps, {pages, pages, 0, 0}), (list{0, 1}));
  EXPECT_EQ(pass(steps, {pages, pages, pages, 0}), list{2});
  EXPECT_EQ(steps.new_bytes(), slice);
  EXPECT_EQ(pass(steps, {pages, pages, pages, 3}), list{3});
  EXPECT_EQ(pass(steps, {pages, pages, pages, pages}), list{3}); // the only slice that is not whole
  EXPECT_EQ(steps.new_bytes(), (pages - 3) * populate_steps::page_bytes);
  EXPECT_TRUE(steps.whole());
}

TEST(PopulateSteps, CountsPagesThatReturnOnlyOnceEach) {
  populate_steps steps(2 * slice);
  pass(steps, {pages, 5});
  EXPECT_EQ(pass(steps, {pages, 6}), list{1});
  EXPECT_EQ(steps.new_bytes(), populate_steps::page_bytes);
}

TEST(PopulateSteps, LooksAtAMultipleOfWhatExistsHoweverLargeTheRegion) {
  populate_steps steps(uint64_t{1} << 40);
  ASSERT_TRUE(steps.begin(populate_steps::page_bytes));
  uint64_t looked_at = 0;
  while (auto next = steps.next()) {
    looked_at += next->bytes;
    steps.add(*next, 0);
  }
  EXPECT_EQ(looked_at, populate_steps::looked_at_least);
  ASSERT_TRUE(steps.begin(uint64_t{1} << 30)); // the next pass continues behind it
  EXPECT_EQ(steps.next()->offset, populate_steps::looked_at_least);
}

TEST(PopulateSteps, ReachesEverySliceInTheEnd) {
  constexpr uint64_t slices = 200;
  populate_steps steps(slices * slice);
  std::set<uint64_t> seen;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(steps.begin(slice));
    while (auto next = steps.next()) {
      seen.insert(next->offset);
      steps.add(*next, 0);
    }
  }
  EXPECT_EQ(seen.size(), slices);
}

TEST(PopulateSteps, TheLastSliceMayBeShort) {
  populate_steps steps(slice + 5000); // two pages, of which the second is partly beyond the end
  ASSERT_TRUE(steps.begin(slice + 8192));
  steps.add(*steps.next(), pages);
  auto last = steps.next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->bytes, 5000u);
  steps.add(*last, 2);
  EXPECT_TRUE(steps.whole());
  EXPECT_FALSE(steps.next());
}

TEST(PopulateRhythm, BecomesRareWherePassesFindNothing) {
  populate_rhythm rhythm;
  EXPECT_EQ(rhythm.after(1), 1);
  EXPECT_EQ(rhythm.after(0), 2);
  EXPECT_EQ(rhythm.after(0), 4);
  EXPECT_EQ(rhythm.after(1), 1);
  for (int i = 0; i < 40; ++i)
    rhythm.after(0);
  EXPECT_EQ(rhythm.after(0), populate_rhythm::most);
}

} // namespace
} // namespace terrace::test
