#include "base/credit_gate.hpp"

#include <gtest/gtest.h>

using terrace::credit_gate;

TEST(CreditGate, HasCreditForSoManyObjects) {
  credit_gate gate;
  EXPECT_TRUE(gate.offer(credit_gate::waiting_max));
  EXPECT_FALSE(gate.offer(1)) << "it waits nevertheless";
  EXPECT_EQ(gate.waiting(), credit_gate::waiting_max + 1);
  gate.heard(credit_gate::waiting_max);
  EXPECT_TRUE(gate.offer(credit_gate::waiting_max - 1));
  gate.heard(credit_gate::waiting_max);
  EXPECT_EQ(gate.waiting(), 0U);
}

TEST(CreditGate, ALongChainHasCreditWhenNothingElseWaits) {
  credit_gate gate;
  EXPECT_TRUE(gate.offer(4 * credit_gate::waiting_max));
  EXPECT_FALSE(gate.offer(1));
}

TEST(CreditGate, SkipsWhatWouldBeTooMuchAndNeverALoneRequest) {
  credit_gate gate;
  EXPECT_TRUE(gate.offer_or_skip(credit_gate::waiting_max + 1));
  EXPECT_FALSE(gate.offer_or_skip(1));
  EXPECT_EQ(gate.skipped(), 1u);
  gate.heard(credit_gate::waiting_max + 1);
  EXPECT_TRUE(gate.offer_or_skip(credit_gate::waiting_max));
  EXPECT_FALSE(gate.offer_or_skip(1));
  gate.heard(credit_gate::waiting_max);
  EXPECT_TRUE(gate.offer_or_skip(1));
  EXPECT_EQ(gate.skipped(), 2u);
}
