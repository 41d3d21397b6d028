#include "group/tail_registry.hpp"

#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace terrace::test {
namespace {

class TailRegistry : public ::testing::Test {
 protected:
  digest named(uint8_t number) {
    digest key;
    key.bytes[0] = number;
    return key;
  }
  tail_reference refer(uint8_t number, tail_referrer by = tail_referrer::session) {
    return book_.refer(in_, named(number), by);
  }

  space_registry spaces_{{.spaces_max = 2}};
  space_ptr in_ = spaces_.open(small_space()).value();
  tail_registry book_;
};

TEST_F(TailRegistry, ATailIsUnreferredWhenItsLastReferenceEnds) {
  std::optional<tail_reference> first = refer(1), second = refer(1, tail_referrer::store);
  EXPECT_EQ(book_.size(), 1U);
  EXPECT_EQ(book_.references(tail_referrer::session), 1U);
  EXPECT_EQ(book_.references(in_->id, named(1), tail_referrer::store), 1U);
  first.reset();
  EXPECT_TRUE(book_.referred(in_->id, named(1)));
  EXPECT_EQ(book_.next_unreferred().space, nullptr);
  second.reset();
  EXPECT_FALSE(book_.referred(in_->id, named(1)));
  auto gone = book_.next_unreferred();
  EXPECT_EQ(gone.space, in_);
  EXPECT_EQ(gone.key, named(1));
  EXPECT_EQ(book_.next_unreferred().space, nullptr);
}

TEST_F(TailRegistry, AReferenceMovesWithItsOwner) {
  tail_reference held = refer(1), empty;
  EXPECT_FALSE(empty);
  empty = std::move(held);
  EXPECT_TRUE(empty);
  EXPECT_EQ(empty.key(), named(1));
  EXPECT_EQ(book_.references(tail_referrer::session), 1U);
  empty = refer(2);
  EXPECT_EQ(book_.next_unreferred().key, named(1));
  empty = {};
  EXPECT_EQ(book_.size(), 0U);
}

TEST_F(TailRegistry, OneThatIsReferredToAgainStays) {
  { auto once = refer(1); }
  auto again = refer(1);
  EXPECT_EQ(book_.next_unreferred().space, nullptr);
}

TEST_F(TailRegistry, TheReferencesOfOneTailEndWithoutChangingAnother) {
  auto one = refer(1), other = refer(2), same = refer(2, tail_referrer::prompt);
  one = std::move(same); // the reference that it had ends
  EXPECT_EQ(book_.next_unreferred().key, named(1));
  EXPECT_EQ(one.key(), named(2));
  other = {};
  EXPECT_TRUE(book_.referred(in_->id, named(2)));
  EXPECT_EQ(book_.references(tail_referrer::session), 0U);
  EXPECT_EQ(book_.references(tail_referrer::prompt), 1U);
}

TEST_F(TailRegistry, BeyondItsBoundTailsStayUntilTheyAreEvicted) {
  for (size_t i = 0; i < tail_registry::unreferred_max + 1; ++i) {
    digest key;
    std::memcpy(key.bytes.data(), &i, sizeof i);
    book_.refer(in_, key, tail_referrer::store);
  }
  size_t left = 0;
  while (book_.next_unreferred().space)
    ++left;
  EXPECT_EQ(left, tail_registry::unreferred_max);
}

} // namespace
} // namespace terrace::test
