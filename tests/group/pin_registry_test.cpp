#include "group/lease_registry.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

struct PinRegistry : ::testing::Test {
  pin_registry pins;
  uint8_t next = 0;

  lease_ptr lease_of(uint64_t bytes, uint32_t space = 1) {
    auto made = std::make_shared<lease>();
    made->id.bytes[0] = ++next;
    auto in = std::make_shared<opened_space>();
    in->id = space_id{space};
    made->space = in;
    made->bytes = bytes;
    return made;
  }
};

const digest prompt{{1}}, other{{2}};

} // namespace

TEST_F(PinRegistry, KeepsALeaseUntilItsPromptIsUnpinned) {
  auto held = lease_of(100);
  std::weak_ptr<const lease> seen = held;
  auto added = pins.add(held, prompt, 1000);
  ASSERT_TRUE(added);
  EXPECT_EQ(*added, nullptr);
  held.reset();
  EXPECT_FALSE(seen.expired());
  EXPECT_EQ(pins.bytes(), 100u);
  EXPECT_EQ(pins.remove(space_id{1}, other), nullptr);
  EXPECT_EQ(pins.remove(space_id{2}, prompt), nullptr) << "the same prompt in another space";
  EXPECT_NE(pins.remove(space_id{1}, prompt), nullptr);
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(pins.bytes(), 0u);
}

TEST_F(PinRegistry, APromptHasOnePin) {
  auto first = lease_of(100), second = lease_of(300);
  ASSERT_TRUE(pins.add(first, prompt, 350));
  auto replaced = pins.add(second, prompt, 350);
  ASSERT_TRUE(replaced) << "what it replaces does not count";
  EXPECT_EQ(*replaced, first);
  EXPECT_EQ(pins.size(), 1u);
  EXPECT_EQ(pins.bytes(), 300u);
  EXPECT_EQ(pins.remove(first->id), nullptr);
  EXPECT_EQ(pins.remove(second->id), second);
}

TEST_F(PinRegistry, HasABoundOfBytesThatTheErrorNames) {
  ASSERT_TRUE(pins.add(lease_of(100), prompt, 250));
  auto refused = pins.add(lease_of(151), other, 250);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_space);
  EXPECT_NE(refused.error().text.find("lease.pin_percent"), std::string::npos) << refused.error().text;
  EXPECT_EQ(pins.size(), 1u);
  EXPECT_TRUE(pins.add(lease_of(150), other, 250));
}

TEST_F(PinRegistry, HasABoundOfPins) {
  for (size_t i = 0; i < pin_registry::pins_max; ++i) {
    digest each;
    each.bytes[0] = static_cast<uint8_t>(i);
    each.bytes[1] = static_cast<uint8_t>(i >> 8);
    ASSERT_TRUE(pins.add(lease_of(1), each, 1 << 20));
  }
  digest more;
  more.bytes[2] = 1;
  auto refused = pins.add(lease_of(1), more, 1 << 20);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
}
