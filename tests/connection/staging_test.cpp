#include "connection/staging.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

std::unique_ptr<staging> made(uint64_t bytes = 32768) {
  auto created = staging::create(bytes);
  EXPECT_TRUE(created) << created.error().text;
  return std::move(*created);
}

staged what(uint64_t first, size_t count) {
  staged out;
  out.objects = chain(first, count);
  return out;
}

} // namespace

TEST(Staging, AReservationHasAnExtentForEachObject) {
  auto memory = made();
  auto id = memory->reserve(what(0, 2), {4096, 5000});
  ASSERT_TRUE(id) << id.error().text;
  const staged* found = memory->find(*id);
  ASSERT_NE(found, nullptr);
  ASSERT_EQ(found->extents.size(), 2u);
  EXPECT_GE(found->extents[1].size, 5000u);
  EXPECT_EQ(found->objects->keys[1], key_of(1));
  EXPECT_EQ(memory->reservations(), 1u);
}

TEST(Staging, ReservationsDoNotOverlapAndHaveIdsOfTheirOwn) {
  auto memory = made();
  auto first = memory->reserve(what(0, 1), {16384});
  auto second = memory->reserve(what(1, 1), {16384});
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_NE(memory->find(*first)->extents[0].offset, memory->find(*second)->extents[0].offset);
}

TEST(Staging, ReservationsWithoutMemoryHaveABoundToo) {
  auto memory = std::move(*staging::create(32768, 2));
  auto first = memory->reserve(what(0, 0), {}); // all objects are present
  ASSERT_TRUE(first && memory->reserve(what(0, 0), {}));
  auto third = memory->reserve(what(0, 0), {});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, errc::busy);
  EXPECT_NE(third.error().text.find("connection.group_bytes"), std::string::npos);
  ASSERT_TRUE(memory->take(*first));
  EXPECT_TRUE(memory->reserve(what(0, 0), {}));
}

TEST(Staging, IsFullWhenItsBytesAreReservedAndNamesTheOption) {
  auto memory = made();
  ASSERT_TRUE(memory->reserve(what(0, 1), {20000}));
  auto refused = memory->reserve(what(1, 1), {16384});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_space);
  EXPECT_NE(refused.error().text.find("connection.staging_bytes"), std::string::npos);
  EXPECT_EQ(memory->reservations(), 1u);
}

TEST(Staging, RefusesForGoodWhatCanNeverFit) {
  auto memory = made();
  auto refused = memory->reserve(what(0, 2), {32768, 4096});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("at most 32768"), std::string::npos) << refused.error().text;
  refused = memory->reserve(what(0, 9), std::vector<uint64_t>(9, 1)); // each object takes a page
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request) << refused.error().text;
  EXPECT_NE(refused.error().text.find("take 36864 bytes"), std::string::npos) << refused.error().text;
  EXPECT_TRUE(memory->reserve(what(0, 8), std::vector<uint64_t>(8, 1)));
}

TEST(Staging, WhatIsTakenIsFoundByNobodyElseAndKeepsItsSpaceUntilItIsPutBack) {
  auto memory = made();
  auto id = memory->reserve(what(0, 1), {32768});
  auto taken = memory->take(*id);
  ASSERT_TRUE(taken);
  EXPECT_EQ(memory->find(*id), nullptr);
  auto twice = memory->take(*id);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, errc::not_found);
  EXPECT_FALSE(memory->reserve(what(1, 1), {4096})); // the reservation is still being copied
  memory->put_back(**taken);
  EXPECT_TRUE(memory->reserve(what(1, 1), {32768}));
}

TEST(Staging, AReservationOfNothingTakesNoSpace) {
  auto memory = made();
  ASSERT_TRUE(memory->reserve(what(0, 1), {32768}));
  auto id = memory->reserve(what(0, 0), {}); // every object was already there
  ASSERT_TRUE(id);
  auto taken = memory->take(*id);
  ASSERT_TRUE(taken);
  memory->put_back(**taken);
}

TEST(Staging, ItsMemoryOutlivesItForACopyInWork) {
  auto memory = made();
  outside_memory source = memory->source();
  source.data[5] = std::byte{7};
  memory.reset();
  EXPECT_EQ(source.data[5], std::byte{7});
}

TEST(Staging, RefusesABrokenSize) {
  auto refused = staging::create(100);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
}

TEST(AbsentChunks, AChunkIsWrittenAsAWholeOrNotAtAll) {
  auto all = chain(0, 6); // three chunks of two objects
  object_bitmap present(6);
  for (size_t i : {0, 1, 3})
    present.set(i);
  auto [objects, wanted] = absent_chunks(*all, 2, present);
  EXPECT_EQ(wanted, (std::vector<bool>{false, false, true, true, true, true}));
  ASSERT_EQ(objects->size(), 4u);
  EXPECT_EQ(objects->keys[0], all->keys[2]);
  EXPECT_EQ(objects->parents[0], all->parents[2]);
  EXPECT_EQ(objects->payload_bytes.size(), 4u);
}

TEST(AbsentChunks, ThereIsNothingToWriteIfEverythingIsPresent) {
  auto all = chain(0, 2);
  object_bitmap present(2);
  present.set(0);
  present.set(1);
  EXPECT_EQ(absent_chunks(*all, 2, present).objects->size(), 0u);
}
