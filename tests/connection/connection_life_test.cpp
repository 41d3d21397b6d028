#include "connection/connection_life.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using phase = connection_phase;
using next = connection_life::next;

namespace {

constexpr pid_t pid = 12;

connection_life in(phase wanted) {
  connection_life life(pid, true);
  if (wanted == phase::handshake)
    return life;
  life.greeted(false);
  if (wanted == phase::draining)
    life.drain(false);
  if (wanted == phase::closing)
    life.close();
  if (wanted == phase::quarantined)
    life.quarantine(true);
  EXPECT_EQ(life.now(), wanted);
  return life;
}

} // namespace

TEST(ConnectionLife, BeginsWithAHandshake) {
  auto life = in(phase::handshake);
  EXPECT_TRUE(life.reads());
  EXPECT_FALSE(life.ends());
  life.greeted(true);
  EXPECT_EQ(life.now(), phase::serving);
  EXPECT_TRUE(life.observes());
  auto draining = in(phase::draining);
  draining.greeted(false);
  EXPECT_EQ(draining.now(), phase::draining);
}

TEST(ConnectionLife, EndsOnceItsLastFrameIsSent) {
  EXPECT_EQ(in(phase::serving).sent(true, false, true), next::go_on);
  EXPECT_EQ(in(phase::serving).sent(false, false, true), next::finish);
  EXPECT_EQ(in(phase::closing).sent(true, true, true), next::go_on);
  EXPECT_EQ(in(phase::closing).sent(true, false, true), next::finish);
  auto life = in(phase::serving);
  EXPECT_TRUE(life.close());
  EXPECT_TRUE(life.ends());
  EXPECT_FALSE(life.close());
}

TEST(ConnectionLife, AnswersWhatIsInFlightBeforeTheDaemonEnds) {
  auto busy = in(phase::serving);
  EXPECT_EQ(busy.drain(false), next::go_on);
  EXPECT_TRUE(busy.reads());
  EXPECT_EQ(busy.sent(true, true, false), next::go_on);
  EXPECT_EQ(busy.sent(true, false, true), next::say_goodbye);
  EXPECT_EQ(in(phase::serving).drain(true), next::say_goodbye);
  EXPECT_EQ(in(phase::draining).drain(true), next::go_on) << "once";
  EXPECT_EQ(in(phase::closing).drain(true), next::go_on);
}

TEST(ConnectionLife, AHangUpIsTheEndUnlessAReceiveReportsIt) {
  EXPECT_EQ(in(phase::serving).hung_up(false, true), next::go_on);
  EXPECT_EQ(in(phase::serving).hung_up(false, false), next::finish);
  EXPECT_EQ(in(phase::closing).hung_up(false, false), next::go_on) << "it may still read why";
  EXPECT_EQ(in(phase::closing).hung_up(true, true), next::finish);
  EXPECT_EQ(in(phase::quarantined).hung_up(true, false), next::go_on);
}

TEST(ConnectionLife, LeavesForAnotherWhileItIsSilentOrLooks) {
  auto silent = in(phase::handshake).leave();
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->code, errc::busy);
  EXPECT_NE(silent->text.find("expected hello"), std::string::npos);
  auto observer = in(phase::handshake);
  observer.greeted(true);
  EXPECT_NE(observer.leave()->text.find("observers"), std::string::npos);
  EXPECT_FALSE(in(phase::draining).leave());
  EXPECT_FALSE(in(phase::closing).leave());
}

TEST(ConnectionLife, IsQuarantinedWhileItsProcessMayRead) {
  EXPECT_FALSE(in(phase::serving).quarantine(false)) << "it holds nothing";
  EXPECT_FALSE(connection_life(pid, false).quarantine(true)) << "nobody would notice its end";
  EXPECT_FALSE(in(phase::draining).quarantine(true)) << "the mapping outlives the daemon";
  auto life = in(phase::quarantined);
  EXPECT_TRUE(life.ends());
  EXPECT_EQ(life.confirmed(pid + 1), next::go_on);
  EXPECT_EQ(life.confirmed(pid), next::quit);
  EXPECT_EQ(life.drain(true), next::quit);
  EXPECT_EQ(in(phase::serving).confirmed(pid), next::go_on);
  connection_life invisible(0, true);
  invisible.quarantine(true);
  EXPECT_EQ(invisible.confirmed(0), next::go_on);
}

TEST(ConnectionLife, EndsWithItsProcess) {
  auto life = in(phase::quarantined);
  life.process_ended();
  EXPECT_EQ(life.now(), phase::closing);
}
