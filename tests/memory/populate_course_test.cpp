#include "memory/region_populator.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace terrace::testing {
namespace {

constexpr uint64_t slice = populate_course::slice_bytes;
constexpr uint64_t pages = slice / populate_course::page_bytes;

/// Makes a pass over a region with `present` pages in each slice; returns the slices that it looked at.
std::vector<uint64_t> pass(populate_course& course, const std::vector<uint64_t>& present) {
  uint64_t all = 0;
  for (uint64_t each : present)
    all += each * populate_course::page_bytes;
  std::vector<uint64_t> seen;
  if (!course.begin(all))
    return seen;
  while (auto next = course.next()) {
    seen.push_back(next->offset / slice);
    course.add(*next, present[next->offset / slice]);
  }
  return seen;
}

using list = std::vector<uint64_t>;

TEST(PopulateCourse, LooksAtEachSliceOnceWhereEverythingExists) {
  populate_course course(3 * slice);
  EXPECT_EQ(pass(course, {pages, pages, pages}), (list{0, 1, 2}));
  EXPECT_EQ(course.new_bytes(), 3 * slice);
  EXPECT_TRUE(course.whole());
  EXPECT_FALSE(course.begin(3 * slice));
}

TEST(PopulateCourse, BeginsNoPassWhereNothingIsNew) {
  populate_course course(3 * slice);
  EXPECT_EQ(pass(course, {0, 0, 0}), list{});
  EXPECT_EQ(pass(course, {7, 0, 0}), list{0}); // stops when it has found all pages that exist
  EXPECT_EQ(course.new_bytes(), 7 * populate_course::page_bytes);
  EXPECT_EQ(pass(course, {7, 0, 0}), list{});
  EXPECT_FALSE(course.whole());
}

TEST(PopulateCourse, GoesOnWhereItEndedAndSkipsWhatIsWhole) {
  populate_course course(4 * slice);
  EXPECT_EQ(pass(course, {pages, pages, 0, 0}), (list{0, 1}));
  EXPECT_EQ(pass(course, {pages, pages, pages, 0}), list{2});
  EXPECT_EQ(course.new_bytes(), slice);
  EXPECT_EQ(pass(course, {pages, pages, pages, 3}), list{3});
  EXPECT_EQ(pass(course, {pages, pages, pages, pages}), list{3}); // the only slice that is not whole
  EXPECT_EQ(course.new_bytes(), (pages - 3) * populate_course::page_bytes);
  EXPECT_TRUE(course.whole());
}

TEST(PopulateCourse, CountsPagesThatReturnOnlyOnceEach) {
  populate_course course(2 * slice);
  pass(course, {pages, 5});
  EXPECT_EQ(pass(course, {pages, 6}), list{1});
  EXPECT_EQ(course.new_bytes(), populate_course::page_bytes);
}

TEST(PopulateCourse, LooksAtAMultipleOfWhatExistsHoweverLargeTheRegion) {
  populate_course course(uint64_t{1} << 40);
  ASSERT_TRUE(course.begin(populate_course::page_bytes));
  uint64_t looked_at = 0;
  while (auto next = course.next()) {
    looked_at += next->bytes;
    course.add(*next, 0);
  }
  EXPECT_EQ(looked_at, populate_course::looked_at_least);
  ASSERT_TRUE(course.begin(uint64_t{1} << 30)); // the next pass continues behind it
  EXPECT_EQ(course.next()->offset, populate_course::looked_at_least);
}

TEST(PopulateCourse, ReachesEverySliceInTheEnd) {
  constexpr uint64_t slices = 200;
  populate_course course(slices * slice);
  std::set<uint64_t> seen;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(course.begin(slice));
    while (auto next = course.next()) {
      seen.insert(next->offset);
      course.add(*next, 0);
    }
  }
  EXPECT_EQ(seen.size(), slices);
}

TEST(PopulateCourse, TheLastSliceMayBeShort) {
  populate_course course(slice + 5000); // two pages, of which the second is partly beyond the end
  ASSERT_TRUE(course.begin(slice + 8192));
  course.add(*course.next(), pages);
  auto last = course.next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->bytes, 5000u);
  course.add(*last, 2);
  EXPECT_TRUE(course.whole());
  EXPECT_FALSE(course.next());
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
} // namespace terrace::testing
