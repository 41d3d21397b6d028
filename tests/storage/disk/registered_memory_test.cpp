#include "storage/disk/registered_memory.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace registered_memory_test {

constexpr uint64_t page = 4096;

/// Has slots of two pages. Refuses memory once it is `full`.
struct counting_port {
  int next = 0;
  bool full = false;
  std::vector<std::pair<int, uint64_t>> gone;

  int register_arena(void*, uint64_t size) {
    if (full)
      return -1;
    int first = next;
    next += static_cast<int>(size / (2 * page));
    return first;
  }
  void unregister_arena(int slot, uint64_t size) { gone.emplace_back(slot, size); }
};

struct RegisteredMemory : ::testing::Test {
  std::shared_ptr<const arena> first = made(), second = made();
  counting_port port;
  registered_memory memory{{first}, 2 * page};

  static std::shared_ptr<const arena> made() {
    auto created = arena::create({.name = "test", .bytes = 4 * page});
    EXPECT_TRUE(created) << created.error().text;
    return std::make_shared<const arena>(std::move(*created));
  }
};

TEST_F(RegisteredMemory, HasSlotsOnceItIsRegistered) {
  EXPECT_EQ(memory.slot_of(first->data(), page), -1);
  memory.register_all(port);
  EXPECT_EQ(memory.slot_of(first->data(), page), 0);
  EXPECT_EQ(memory.slot_of(first->data() + 3 * page, page), 1);
  EXPECT_EQ(memory.slot_of(first->data() + 3 * page, 2 * page), -1) << "beyond its end";
  memory.register_all(port);
  EXPECT_EQ(port.next, 2) << "once";
}

TEST_F(RegisteredMemory, ASegmentThatJoinsIsRegisteredIfItIsCommitted) {
  memory.add(port, first, true);
  EXPECT_EQ(port.next, 0) << "it is known";
  memory.add(port, second, false);
  EXPECT_EQ(memory.slot_of(second->data(), page), -1);
  memory.register_all(port);
  EXPECT_EQ(memory.slot_of(second->data(), page), 2);
}

TEST_F(RegisteredMemory, WhatTheKernelRefusesUsesPlainBuffers) {
  port.full = true;
  memory.register_all(port);
  EXPECT_EQ(memory.slot_of(first->data(), page), -1);
}

/// Memory that is committed when it is used.
struct LateMemory : RegisteredMemory {
  std::vector<const std::byte*> looked; ///< the slots that were looked at
  bool committed = true;
  registered_memory late{{first}, 2 * page, [this](const std::byte* data, uint64_t bytes) {
                           EXPECT_EQ(bytes, 2 * page);
                           looked.push_back(data);
                           return committed;
                         }};
  const std::byte* second_slot = first->data() + 2 * page;
};

TEST_F(LateMemory, ASlotIsRegisteredOnceAsMuchWasMovedThereAsItHas) {
  EXPECT_EQ(late.use(port, second_slot, page), -1);
  EXPECT_TRUE(looked.empty());
  EXPECT_EQ(late.use(port, second_slot, page), 0);
  EXPECT_EQ(late.slot_of(second_slot, page), 0);
  EXPECT_EQ(late.use(port, first->data(), page), -1) << "another slot";
  EXPECT_EQ(late.use(port, second_slot, page), 0);
  EXPECT_EQ(looked, (std::vector<const std::byte*>{second_slot}));
  late.register_all(port);
  EXPECT_EQ(late.slot_of(first->data(), page), 1) << "the rest";
  EXPECT_EQ(late.slot_of(second_slot, page), 0);
}

TEST_F(LateMemory, WhatIsNotCommittedIsLookedAtLessAndLessOften) {
  committed = false;
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(late.use(port, second_slot, page), -1);
  EXPECT_EQ(looked.size(), 6u) << "after 2, 4, 8, 16, 32 and 64 pages";
  EXPECT_EQ(port.next, 0);
}

TEST_F(LateMemory, WhatTheKernelRefusesIsNotOfferedAgain) {
  port.full = true;
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(late.use(port, second_slot, page), -1);
  EXPECT_EQ(looked.size(), 1u);
}

TEST_F(LateMemory, OnlyItsRegisteredSlotsAreUnregistered) {
  late.use(port, second_slot, 2 * page);
  late.forget(port, first->data());
  EXPECT_EQ(port.gone, (std::vector<std::pair<int, uint64_t>>{{0, 2 * page}}));
}

TEST_F(RegisteredMemory, ASegmentThatLeavesIsUnregistered) {
  memory.register_all(port);
  memory.forget(port, second->data());
  EXPECT_TRUE(port.gone.empty());
  memory.forget(port, first->data());
  ASSERT_EQ(port.gone.size(), 1u);
  EXPECT_EQ(port.gone[0], std::make_pair(0, 4 * page));
  EXPECT_EQ(memory.slot_of(first->data(), page), -1);
}

} // namespace registered_memory_test
