#include "gpu/copy_request.hpp"

#include <gtest/gtest.h>

namespace terrace::gpu {
namespace {

copy_request of(strided_copy one) {
  copy_request made;
  made.parts = {{{one}, {}}};
  return made;
}

bool fits(strided_copy one, uint64_t region = 1000, uint64_t object = 1000) {
  auto answer = check(of(one), region, object, 0);
  EXPECT_TRUE(answer || answer.error().code == errc::bad_request);
  return bool(answer);
}

TEST(CopyRequest, PiecesEndInsideTheirMemory) {
  EXPECT_TRUE(fits({0, 0, 1000, 0, 0, 1}));
  EXPECT_FALSE(fits({0, 0, 1001, 0, 0, 1}));
  EXPECT_FALSE(fits({1, 0, 1000, 0, 0, 1}));
  EXPECT_TRUE(fits({0, 0, 100, 300, 100, 4})); // 0, 300, 600, 900
  EXPECT_FALSE(fits({1, 0, 100, 300, 100, 4}));
  EXPECT_FALSE(fits({0, 601, 100, 300, 100, 4}));
}

TEST(CopyRequest, NumbersFromOutsideDoNotOverflow) {
  constexpr uint64_t huge = UINT64_MAX;
  EXPECT_FALSE(fits({huge, 0, 1, 0, 0, 1}));
  EXPECT_FALSE(fits({0, 0, huge, 0, 0, 1}));
  EXPECT_FALSE(fits({0, 0, 1, huge, 1, 2}));
  EXPECT_FALSE(fits({0, 0, 1, uint64_t{1} << 63, 1, 3}));
  EXPECT_FALSE(fits({0, 0, 1, 1, 1, huge}));
}

TEST(CopyRequest, PiecesOfACopyDoNotOverlap) {
  EXPECT_FALSE(fits({0, 0, 100, 99, 100, 2}));
  EXPECT_FALSE(fits({0, 0, 100, 100, 0, 2}));
  EXPECT_TRUE(fits({0, 0, 100, 0, 0, 1})) << "of one piece the stride does not count";
}

TEST(CopyRequest, IsNeverEmptyAndNeverEndless) {
  EXPECT_FALSE(fits({0, 0, 0, 0, 0, 1}));
  EXPECT_FALSE(fits({0, 0, 1, 0, 0, 0}));
  EXPECT_FALSE(check(copy_request(), 1000, 1000, 0));
  copy_request empty_part;
  empty_part.parts.resize(1);
  EXPECT_FALSE(check(empty_part, 1000, 1000, 0));
  empty_part.parts[0].signal = generation{0, 1};
  EXPECT_TRUE(check(empty_part, 1000, 1000, 1)) << "it only signals";
  copy_request many;
  many.parts.resize(parts_per_request_max + 1, copy_part{{{0, 0, 1, 0, 0, 1}}, {}});
  EXPECT_FALSE(check(many, 1000, 1000, 0));
  copy_request pieces;
  pieces.parts = {{std::vector(3, strided_copy{0, 0, 1, 1, 1, pieces_per_part_max / 2}), {}}};
  EXPECT_FALSE(check(pieces, pieces_per_part_max, pieces_per_part_max, 0));
}

TEST(CopyRequest, SlotsAreOnThePage) {
  auto made = of({0, 0, 1, 0, 0, 1});
  made.await = generation{3, 1};
  EXPECT_FALSE(check(made, 1, 1, 3));
  EXPECT_TRUE(check(made, 1, 1, 4));
  made.parts[0].signal = generation{4, 1};
  EXPECT_FALSE(check(made, 1, 1, 4));
}

TEST(CopyRequest, CountsItsBytes) {
  copy_part part;
  part.copies = {{0, 0, 10, 20, 10, 3}, {100, 100, 5, 0, 0, 1}};
  EXPECT_EQ(bytes_of(part), 35u);
}

} // namespace
} // namespace terrace::gpu
