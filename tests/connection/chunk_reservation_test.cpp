#include "connection/chunk_reservation.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {
std::unique_ptr<staging> memory_of(uint64_t bytes) { return staging::create(bytes).value(); }
} // namespace

TEST(ChunkReservation, HasABoundOnItsObjects) {
  EXPECT_TRUE(may_reserve({{0, reserved_objects_max / 2}, {0, 1}}));
  auto refused = may_reserve({{0, reserved_objects_max / 2 + 1}, {0, 1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("16386 objects were asked for: expected at most 16384"),
            std::string::npos);
}

TEST(ChunkReservation, HasMemoryForChunksThatAreNotPresentAsAWhole) {
  auto memory = memory_of(1 << 20);
  object_bitmap present(6); // three chunks of two objects
  for (size_t object : {0, 1, 3})
    present.set(object);
  auto reserved = reserve_absent(*memory, nullptr, chain(1, 6), 2, present);
  ASSERT_TRUE(reserved) << reserved.error().text;
  EXPECT_EQ(reserved->wanted, (std::vector<bool>{false, false, true, true, true, true}));
  const staged* kept = memory->find(reserved->id);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->objects->size(), 4u);
  EXPECT_EQ(kept->objects_per_chunk, 2u);
  EXPECT_EQ(kept->present_objects, 2u);

  flatbuffers::FlatBufferBuilder body;
  body.Finish(write_reserve_answer(body, *reserved, *memory));
  const auto& answer = *flatbuffers::GetRoot<wire::ReserveAnswer>(body.GetBufferPointer());
  EXPECT_EQ(answer.reservation(), reserved->id);
  ASSERT_EQ(answer.locations()->size(), 6u);
  EXPECT_EQ(answer.locations()->Get(1)->bytes(), 0u) << "nothing is written there";
  for (uint32_t i = 2; i < 6; ++i) {
    EXPECT_EQ(answer.locations()->Get(i)->bytes(), 4096u);
    EXPECT_EQ(answer.locations()->Get(i)->offset(), kept->extents[i - 2].offset);
  }
}

TEST(ChunkReservation, IsRefusedWithoutRoom) {
  auto memory = memory_of(8192);
  auto refused = reserve_absent(*memory, nullptr, chain(1, 3), 1, object_bitmap(3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(memory->reservations(), 0u);
}
