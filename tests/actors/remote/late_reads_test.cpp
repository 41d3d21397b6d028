// Reads of a remote store that nobody waits for any longer.
#include "played_store.hpp"

namespace terrace::actors {
namespace late_reads_test {

class LateReads : public played_store_test::PlayedObjects {
 protected:
  LateReads() { EXPECT_EQ((*write())->outcomes, all(move_outcome::done)); }
};

TEST_F(LateReads, WhatComesInTimeIsDelivered) {
  auto told = read(std::chrono::steady_clock::now() + std::chrono::hours(1));
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::done));
}

TEST_F(LateReads, AfterItsTimeNothingIsAskedFor) {
  const size_t before = server_.served["GET"];
  auto told = read(std::chrono::steady_clock::now());
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::late));
  EXPECT_EQ(server_.served["GET"], before);
}

TEST_F(LateReads, AreAnsweredAtTheirTimeAndTheRestIsNotAskedFor) {
  server_.hold("GET");
  const size_t before = server_.served["GET"];
  auto told = read(std::chrono::steady_clock::now() + std::chrono::milliseconds(2));
  const size_t asked = server_.served["GET"] - before;
  EXPECT_LT(asked, count);
  while (!*told) { // the store looks at the clock of this machine
    advance(std::chrono::milliseconds(1));
    go_on();
  }
  EXPECT_EQ((*told)->outcomes, all(move_outcome::late));
  server_.release(); // what is on its way comes
  go_on();
  EXPECT_EQ(server_.served["GET"] - before, asked);
  auto again = read();
  ASSERT_TRUE(*again);
  EXPECT_EQ((*again)->outcomes, all(move_outcome::done));
}

} // namespace late_reads_test
} // namespace terrace::actors
