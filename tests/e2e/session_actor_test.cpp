// Sessions over the socket while their actors come and go.
#include "group/session_table.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <numeric>

namespace terrace::e2e {
namespace {

using test::child_process;
using test::child_voice;

class SessionActors : public ::testing::Test {
 protected:
  SessionActors() {
    std::iota(prompt_.begin(), prompt_.end(), 1);
    for (size_t token = 0; token < shared_tokens; ++token)
      prompt_[token] = 7;
  }
  static client::session opened(tester& by) {
    auto session = by->open_session(by.space(), {.keep = true}, patiently());
    EXPECT_TRUE(session) << session.error().text;
    return session ? std::move(*session) : client::session();
  }
  /// Sends exactly what is given: a client that is told `gone` would begin anew.
  static result<client::lookup_result> turn(tester& by, const client::prefix& what) {
    client::lookup_request request;
    request.in = by.space();
    request.what = what;
    return by->lookup(request, patiently());
  }
  result<client::lookup_result> turn(client::session& of, size_t tokens) {
    client::lookup_request request;
    return of.lookup(std::span(prompt_).first(tokens), of.tokens(), request, patiently());
  }

  static constexpr size_t shared_tokens = 10;
  std::vector<uint32_t> prompt_ = std::vector<uint32_t>(70);
};

TEST_F(SessionActors, AParkedOneGoesOnWhereItWas) {
  constexpr size_t most = session_bounds{}.active_max;
  auto port = test::free_port();
  daemon_under_test daemon({.metrics = "127.0.0.1:" + std::to_string(port)});
  tester by(daemon.socket()), other(daemon.socket(), "other");
  std::vector<client::session> all;
  for (size_t number = 0; number < most + 2; ++number) {
    all.push_back(opened(by));
    auto& session = all.back();
    auto theirs = other->adopt_session(other.space(), session.id(), session.at(), {.keep = true});
    auto& used = number % 2 == 0 ? session : theirs;
    ASSERT_TRUE(turn(used, 50));
    session.moved(used.at());
  }
  auto served = test::scrape(port);
  EXPECT_NE(served.find("terrace_sessions_by_state{group=\"default\",state=\"active\"} " +
                        std::to_string(most) + "\n"),
            std::string::npos);
  EXPECT_NE(served.find("terrace_sessions_by_state{group=\"default\",state=\"parked\"} 2\n"),
            std::string::npos);
  for (size_t number : {size_t{0}, size_t{1}, most + 1}) {
    auto found = turn(by, all[number].continued(prompt_, 50));
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->requested_chunks, 70 / space_chunk_tokens);
    auto listed = by->admin().sessions(patiently());
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed->sessions.at(0).session, all[number].id()) << "the one that was used last";
    EXPECT_EQ(listed->sessions.at(0).generation, 3U);
  }
}

TEST_F(SessionActors, AClientThatIsKilledInATurnLeavesItToOthers) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto session = opened(by);
  auto whole = session.continued(prompt_, 0);
  {
    child_process victim([&](const child_voice& voice) {
      tester of(daemon.socket(), "victim");
      for (bool said = false; turn(of, whole); said = true)
        if (!said)
          voice.say('t');
      return 1; // a turn was refused
    });
    victim.await_word();
    victim.kill();
  }
  auto found = turn(by, whole);
  while (!found && found.error().code == errc::gone) // a turn of the victim has finished meanwhile
    found = turn(by, whole);
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->requested_chunks, 70 / space_chunk_tokens);
  EXPECT_EQ(by->admin().sessions(patiently())->count, 1U);
}

} // namespace
} // namespace terrace::e2e
