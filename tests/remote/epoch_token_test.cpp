// What a machine knows of an epoch token, and what it has to ask or say next.
#include "remote/epoch_token.hpp"

#include "remote/realm.hpp"

#include <gtest/gtest.h>

namespace terrace::remote {
namespace {

using step = epoch_token::step;
const epoch_token::time_point now{std::chrono::hours(1)};

/// The token that the store has is this one, made because there was none.
epoch_token knows(uint64_t value) {
  epoch_token token;
  EXPECT_FALSE(token.was_read(epoch_text(value), now));
  return token;
}

TEST(EpochToken, IsReadBeforeItIsUsed) {
  epoch_token token;
  EXPECT_FALSE(token.usable(now, true));
  EXPECT_EQ(token.next(), step::read);
  EXPECT_FALSE(token.was_read(epoch_text(8), now));
  EXPECT_TRUE(token.usable(now, true));
  EXPECT_EQ(token.value(), 8U);
}

TEST(EpochToken, IsMadeIfTheStoreHasNone) {
  epoch_token token;
  token.was_absent();
  EXPECT_EQ(token.next(), step::make);
  auto text = token.written(7);
  EXPECT_EQ(parse_epoch(text).value() & 1, 0U) << "nobody has cleared";
  token.was_made();
  EXPECT_EQ(token.next(), step::read) << "another machine may have been faster";
  EXPECT_FALSE(token.usable(now, true));
  EXPECT_EQ(parse_epoch(epoch_token().written(0)).value() & 1, 0U) << "it is never 0";
}

TEST(EpochToken, IsReadAgainWhenItMayHaveChanged) {
  auto token = knows(8);
  token.ask_again();
  EXPECT_FALSE(token.usable(now, true));
  EXPECT_EQ(token.next(), step::read);
  EXPECT_FALSE(token.was_read(epoch_text(8), now)) << "it has not";
  EXPECT_TRUE(token.usable(now, true));
}

TEST(EpochToken, LastsForAWhileIfTheStoreDoesNotTell) {
  auto token = knows(8);
  EXPECT_TRUE(token.usable(now + epoch_token::lasts - std::chrono::milliseconds(1), false));
  EXPECT_FALSE(token.usable(now + epoch_token::lasts, false));
  EXPECT_TRUE(token.usable(now + epoch_token::lasts, true));
}

TEST(EpochToken, LastsForAWhileOnceTheStoreNoLongerTells) {
  auto token = knows(8);
  const auto later = now + std::chrono::hours(1);
  EXPECT_TRUE(token.usable(later, true));
  token.is_not_told(later);
  EXPECT_TRUE(token.usable(later + epoch_token::lasts - std::chrono::milliseconds(1), false));
  EXPECT_FALSE(token.usable(later + epoch_token::lasts, false));
  epoch_token unknown;
  unknown.is_not_told(now);
  EXPECT_FALSE(unknown.usable(now, false));
}

TEST(EpochToken, TellsTheClearOfAnotherMachine) {
  auto token = knows(8);
  EXPECT_TRUE(token.was_read(epoch_text(9), now));
  EXPECT_FALSE(token.was_read(epoch_text(9), now)) << "once";
  EXPECT_TRUE(token.was_read(epoch_text(11), now));
  EXPECT_FALSE(knows(8).was_read(epoch_text(10), now))
      << "the store has lost it, and another machine made one";
  EXPECT_FALSE(epoch_token().was_read(epoch_text(9), now)) << "it was cleared before this machine came";
}

TEST(EpochToken, AnOwnClearGoesFirst) {
  auto token = knows(8);
  token.owe_clear();
  EXPECT_FALSE(token.usable(now, true));
  EXPECT_EQ(token.next(), step::clear);
  token.ask_again(); // the connection is lost
  token.was_absent();
  EXPECT_EQ(token.next(), step::clear);
  auto text = token.written(6);
  EXPECT_EQ(text, epoch_text(7));
  token.was_cleared();
  EXPECT_FALSE(token.owes_clear());
  EXPECT_FALSE(token.usable(now, true)) << "the store tells of no key that was only written";
  EXPECT_EQ(token.next(), step::read);
  EXPECT_FALSE(token.was_read(text, now)) << "it is its own";
  EXPECT_TRUE(token.usable(now, true));
  EXPECT_EQ(token.value(), 7U);
}

TEST(EpochToken, AnOwnClearThatAnotherMachinesFirstTokenReplacedIsMadeAgain) {
  auto token = knows(8);
  token.owe_clear();
  token.written(6);
  token.was_cleared();
  EXPECT_FALSE(token.was_read(epoch_text(20), now))
      << "the other one had found no token, and the store knows no conditions";
  EXPECT_EQ(token.next(), step::clear);
  token.written(12);
  token.was_cleared();
  EXPECT_TRUE(token.was_read(epoch_text(15), now)) << "another machine has cleared as well";
  EXPECT_TRUE(token.usable(now, true));
}

TEST(EpochToken, AStoreThatHasLostTheTokenOfAClearGetsAnother) {
  auto token = knows(8);
  token.owe_clear();
  token.written(6);
  token.was_cleared();
  token.was_absent();
  EXPECT_EQ(token.next(), step::make);
  token.written(20);
  token.was_made();
  EXPECT_FALSE(token.was_read(epoch_text(22), now));
  EXPECT_TRUE(token.usable(now, true));
}

TEST(EpochToken, AStoreThatGoesBackBehindAClearIsClearedAgain) {
  auto own = knows(8);
  own.owe_clear();
  EXPECT_EQ(own.written(6), epoch_text(7));
  own.was_cleared();
  EXPECT_FALSE(own.was_read(epoch_text(8), now)) << "the tiers of this machine are clear";
  EXPECT_FALSE(own.usable(now, true));
  EXPECT_EQ(own.next(), step::clear);

  auto other = knows(8);
  EXPECT_TRUE(other.was_read(epoch_text(9), now));
  EXPECT_FALSE(other.was_read(epoch_text(10), now)) << "the store has lost it, and another machine made one";
  EXPECT_FALSE(other.was_read(epoch_text(8), now));
  EXPECT_EQ(other.next(), step::clear) << "also after several tokens";
}

TEST(EpochToken, AStoreThatGoesBackToATokenThatNobodyClearedIsUsed) {
  auto token = knows(8);
  EXPECT_FALSE(token.was_read(epoch_text(10), now)) << "the store has lost the first";
  EXPECT_FALSE(token.was_read(epoch_text(8), now));
  EXPECT_TRUE(token.usable(now, true));
}

TEST(EpochToken, WhatIsNoTokenIsReplaced) {
  epoch_token token;
  EXPECT_FALSE(token.was_read("damaged", now));
  EXPECT_FALSE(token.usable(now, true));
  EXPECT_EQ(token.next(), step::clear);
}

TEST(EpochToken, BothTokensAreInTheEpochOfASpace) {
  EXPECT_NE(combined_epoch(5, 9), combined_epoch(5, 11));
  EXPECT_NE(combined_epoch(5, 9), combined_epoch(7, 9));
  EXPECT_NE(combined_epoch(5, 5), 0U);
}

} // namespace
} // namespace terrace::remote
