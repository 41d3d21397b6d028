#include "runtime/buffer_slots.hpp"

#include <gtest/gtest.h>

namespace terrace::runtime {
namespace {

void register_all(buffer_slots& slots) {
  while (slots.next_unregistered() >= 0)
    slots.mark_registered();
}

// Addresses only; nothing is read or written.
void* at(uint64_t address) { return reinterpret_cast<void*>(address); }

constexpr uint64_t base = uint64_t{1} << 40;
constexpr uint64_t slot = buffer_slot_bytes;

TEST(BufferSlots, CutsAnArenaIntoSlots) {
  buffer_slots slots{16};
  auto range = slots.reserve(at(base), 2 * slot + 4096);
  EXPECT_EQ(range.first, 0u);
  ASSERT_EQ(range.count, 3u);
  EXPECT_EQ(slots.size(0), slot);
  EXPECT_EQ(slots.size(2), 4096u);
  EXPECT_EQ(slots.data(1), at(base + slot));
  EXPECT_EQ(slots.reserve(at(2 * base), 1).first, 3u);
}

TEST(BufferSlots, ForgetsAnArenaForGood) {
  buffer_slots slots{16};
  slots.reserve(at(base), 2 * slot);
  slots.reserve(at(2 * base), slot);
  register_all(slots);
  auto gone = slots.forget(0, 2 * slot);
  EXPECT_EQ(gone.first, 0u);
  EXPECT_EQ(gone.count, 2u);
  EXPECT_FALSE(slots.holds(0, at(base), 4096));
  EXPECT_FALSE(slots.holds(1, at(base + slot), 4096));
  EXPECT_TRUE(slots.holds(2, at(2 * base), 4096));
  EXPECT_EQ(slots.reserve(at(base), slot).first, 3u) << "what is in flight may still name the old slots";
}

TEST(BufferSlots, FindsMemoryThatIsThereAlready) {
  buffer_slots slots(8);
  slots.reserve(at(base), 2 * slot + 4096);
  slots.reserve(at(8 * base), 4096);
  EXPECT_EQ(slots.find(at(base), 2 * slot + 4096), 0);
  EXPECT_EQ(slots.find(at(8 * base), 4096), 3);
  EXPECT_EQ(slots.find(at(8 * base), 8192), -1);
  EXPECT_EQ(slots.find(at(base), slot + 4096), -1);
  EXPECT_EQ(slots.find(at(16 * base), 4096), -1);
}

TEST(BufferSlots, HoldsOnlyWhatLiesInOneSlot) {
  buffer_slots slots{16};
  slots.reserve(at(base), 2 * slot);
  EXPECT_FALSE(slots.holds(0, at(base), slot)) << "not registered yet";
  register_all(slots);
  EXPECT_TRUE(slots.holds(0, at(base), slot));
  EXPECT_TRUE(slots.holds(1, at(base + slot + 4096), 4096));
  EXPECT_FALSE(slots.holds(0, at(base + slot - 4096), 8192)) << "across a slot";
  EXPECT_FALSE(slots.holds(0, at(base + slot), 4096)) << "of the next slot";
  EXPECT_FALSE(slots.holds(1, at(base), 4096)) << "of the slot before";
  EXPECT_FALSE(slots.holds(2, at(base), 4096)) << "no such slot";
  EXPECT_FALSE(slots.holds(-1, at(base), 4096));
}

TEST(BufferSlots, RefusesWhatTheTableCannotHoldAndForgetsAReleasedRange) {
  buffer_slots slots{2};
  EXPECT_EQ(slots.reserve(at(base), 3 * slot).count, 0u);
  EXPECT_EQ(slots.reserve(at(base), 0).count, 0u);
  auto range = slots.reserve(at(base), 2 * slot);
  slots.release(range);
  EXPECT_FALSE(slots.any());
  EXPECT_EQ(slots.reserve(at(base), 2 * slot).first, 0u);
}

TEST(BufferSlots, ASkippedSlotIsNotUsedAndTheNextOneIs) {
  buffer_slots slots{16};
  slots.reserve(at(base), 2 * slot);
  slots.skip();
  EXPECT_EQ(slots.next_unregistered(), 1);
  slots.mark_registered();
  EXPECT_FALSE(slots.holds(0, at(base), 4096));
  EXPECT_TRUE(slots.holds(1, at(base + slot), 4096));
}

TEST(BufferSlots, ARefusedSlotEndsRegistrationForGoodButKeepsWhatIsRegistered) {
  buffer_slots slots{16};
  slots.reserve(at(base), 3 * slot);
  slots.mark_registered();
  EXPECT_EQ(slots.next_unregistered(), 1);
  slots.give_up();
  EXPECT_TRUE(slots.gave_up());
  EXPECT_TRUE(slots.holds(0, at(base), 4096));
  EXPECT_FALSE(slots.holds(1, at(base + slot), 4096));
  EXPECT_EQ(slots.reserve(at(2 * base), 1).count, 0u);
}

} // namespace
} // namespace terrace::runtime
