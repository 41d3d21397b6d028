#include "base/large_pages.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

using namespace terrace;

TEST(HugeMemory, IsZeroedAndBeginsAtAUnit) {
  for (bool huge : {false, true})
    for (size_t units : {1, 3}) {
      huge_memory memory(units * huge_memory::unit, huge);
      ASSERT_NE(memory.data(), nullptr);
      EXPECT_EQ(memory.bytes(), units * huge_memory::unit);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % huge_memory::unit, 0u);
      const auto* bytes = static_cast<const uint8_t*>(memory.data());
      EXPECT_EQ(bytes[0], 0);
      EXPECT_EQ(bytes[memory.bytes() - 1], 0);
      std::memset(memory.data(), 7, memory.bytes()); // all of it may be written
    }
}

TEST(HugeMemory, HasOneOwner) {
  huge_memory first(huge_memory::unit, false);
  void* data = first.data();
  huge_memory second(std::move(first));
  EXPECT_EQ(first.data(), nullptr);
  EXPECT_EQ(second.data(), data);
  huge_memory third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.bytes(), huge_memory::unit);
}

TEST(HugeMemory, WhatTheKernelRefusesThrows) {
  EXPECT_THROW(huge_memory(size_t{1} << 62, false), std::bad_alloc);
}
