// Sessions that hold their chunks between turns.
#include "tests/support/child_process.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include "client/admin.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace terrace::e2e {
namespace held_session_test {

using test::child_process;
using test::child_voice;

constexpr uint32_t chunk = space_chunk_tokens;           // 16 tokens
constexpr uint64_t physical_bytes = object_bytes + 4096; // size on disk, see docs/disk-format.md
constexpr uint64_t held_objects = 7;                     // 25 % of 32 MiB
constexpr client::session_options holds{.mode = client::session_mode::held};

/// Returns tokens that no other seed has.
std::vector<uint32_t> prompt_of(uint32_t seed, size_t chunks, size_t more = 0) {
  std::vector<uint32_t> tokens(chunks * chunk + more);
  std::iota(tokens.begin(), tokens.end(), seed * 100'000);
  return tokens;
}

std::vector<digest> digests_of(tester& by, std::span<const uint32_t> prompt) {
  client::lookup_request request;
  request.in = by.space();
  request.what = client::prefix::of_tokens(prompt);
  request.digests = true;
  auto found = by->lookup(request, patiently());
  EXPECT_TRUE(found) << found.error().text;
  return found ? found->digests : std::vector<digest>();
}

class HeldSession : public ::testing::Test {
 protected:
  void start(const std::string& demotion = {}, const std::string& connection = {}) {
    daemon_options options{.connection = connection, .metrics = "127.0.0.1:" + std::to_string(port_)};
    options.host = "policy = \"lru\"\n";
    options.lease = {}; // the default bounds
    if (!demotion.empty()) {
      options.disk_bytes = 192 * mebibyte;
      options.disk = "admission = \"always\"\ndemotion = \"" + demotion + "\"\n";
    }
    daemon_ = std::make_unique<daemon_under_test>(options);
    if (!demotion.empty()) {
      EXPECT_TRUE(daemon_->await_log("joined"));
    }
    client_ = std::make_unique<tester>(daemon_->socket());
  }
  tester& by() { return *client_; }

  client::session opened(const client::session_options& options = holds) {
    auto session = by()->open_session(by().space(), options, patiently());
    EXPECT_TRUE(session) << session.error().text;
    return session ? std::move(*session) : client::session();
  }
  client::saved_session saved(client::session& of, std::span<const uint32_t> prompt, uint64_t unchanged = 0) {
    auto done = of.save(prompt, unchanged, {}, {}, patiently());
    EXPECT_TRUE(done) << done.error().text;
    return done ? *done : client::saved_session();
  }
  /// Plays a turn: stores the prompt's chunks, and saves the session.
  client::saved_session turn(client::session& of, std::span<const uint32_t> prompt, uint64_t unchanged = 0) {
    by().store(digests_of(by(), prompt));
    return saved(of, prompt, unchanged);
  }
  uint64_t found(std::span<const uint32_t> prompt, uint32_t tiers = on_host) {
    return by().lookup(digests_of(by(), prompt), false, tiers).found_chunks;
  }
  /// Stores more than host memory has, so that everything evictable is evicted.
  void press() {
    for (uint64_t seed = 1; seed <= 5; ++seed)
      EXPECT_EQ(by().store(chain_of(1'000 * ++pressed_ + seed, 8)), 8U);
  }
  client::session_status listed(const client::session& one) {
    auto all = by()->admin().sessions(patiently());
    EXPECT_TRUE(all) << all.error().text;
    for (const auto& each : all->sessions)
      if (each.session == one.id())
        return each;
    return {};
  }
  /// Returns the sum of the samples of a metric whose labels contain the text.
  double metric(const std::string& name, const std::string& label = {}) const {
    double sum = 0;
    std::istringstream lines(test::scrape(port_));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(name + "{") && line.find(label) != std::string::npos)
        sum += std::stod(line.substr(line.rfind(' ')));
    return sum;
  }

  uint16_t port_ = test::free_port();
  std::unique_ptr<daemon_under_test> daemon_;
  std::unique_ptr<tester> client_;
  uint64_t pressed_ = 0;
};

TEST_F(HeldSession, KeepsItsChunksBetweenTurnsAndATaggedOneDoesNot) {
  start();
  auto mine = prompt_of(1, 4, 3), other = prompt_of(2, 4);
  auto session = opened(), tagged = opened({});
  auto kept = turn(session, mine);
  EXPECT_EQ(kept.held_chunks, 4U);
  EXPECT_EQ(kept.held_bytes, 4 * physical_bytes);
  EXPECT_EQ(kept.at.tokens, mine.size());
  EXPECT_EQ(session.tokens(), mine.size());
  EXPECT_TRUE(kept.unheld.empty()) << kept.unheld;
  auto passing = turn(tagged, other);
  EXPECT_EQ(passing.held_chunks, 0U);
  EXPECT_TRUE(passing.unheld.empty()) << passing.unheld;
  EXPECT_EQ(tagged.tokens(), other.size()) << "a save is a turn of tagged sessions too";
  press();
  EXPECT_EQ(found(other), 0U);
  EXPECT_EQ(found(mine), 4U);
  auto places = by()->read_lease(kept.lease, {}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  auto chain = digests_of(by(), mine);
  ASSERT_EQ(places->objects.size(), 4U);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(has_content(chain[i], places->objects[i]));
  EXPECT_EQ(listed(session).held_tokens, 4 * chunk);
  EXPECT_EQ(listed(tagged).mode, client::session_mode::tagged);
  EXPECT_EQ(metric("terrace_sessions_held"), 1);
  EXPECT_EQ(metric("terrace_session_held_bytes"), 4 * physical_bytes);
}

/// A turn searches again for what the previous turn found only if something has left host memory since.
TEST_F(HeldSession, ATurnFindsWhatIsStillThereAndNoMore) {
  start();
  auto prompt = prompt_of(1, 6);
  for (bool held : {true, false}) {
    by().store(digests_of(by(), prompt));
    auto session = opened(held ? holds : client::session_options{});
    auto looked_up = [&](size_t chunks, uint64_t unchanged) {
      auto turn = session.lookup(std::span(prompt).first(chunks * chunk), unchanged, {}, patiently());
      EXPECT_TRUE(turn) << turn.error().text;
      return turn ? std::move(*turn) : client::lookup_result();
    };
    EXPECT_EQ(looked_up(4, 0).found_chunks, 4U);
    if (held) {
      saved(session, std::span(prompt).first(4 * chunk), 4 * chunk);
    }
    auto again = looked_up(6, 4 * chunk);
    EXPECT_EQ(again.found_chunks, 6U);
    EXPECT_EQ(again.found_tokens, 6 * chunk);
    EXPECT_EQ(again.usable_tokens, 6 * chunk - 1) << "the last token is computed";
    EXPECT_EQ(again.tiers, std::vector<tier_kind>(6, tier_kind::host));
    press(); // everything that nobody holds is evicted
    auto after = looked_up(6, 6 * chunk);
    EXPECT_EQ(after.found_chunks, held ? 4U : 0U);
    EXPECT_EQ(after.requested_chunks, 6U);
    by().store(digests_of(by(), prompt));
    EXPECT_EQ(looked_up(6, 6 * chunk).found_chunks, 6U);
    ASSERT_TRUE(by()->admin().clear({}, patiently()));
    EXPECT_EQ(looked_up(6, 6 * chunk).found_chunks, 0U) << "a clear removes what is held, too";
  }
}

/// The tokens after the last whole chunk are searched each time, because the next turn has them in another
/// chunk.
TEST_F(HeldSession, ATurnAfterAPartialChunkFindsTheWholeOne) {
  start();
  auto prompt = prompt_of(1, 6);
  by().store(digests_of(by(), std::span(prompt).first(3 * chunk)));
  auto session = opened();
  auto looked_up = [&](size_t tokens, uint64_t unchanged) {
    auto turn = session.lookup(std::span(prompt).first(tokens), unchanged, {}, patiently());
    EXPECT_TRUE(turn) << turn.error().text;
    return turn ? std::move(*turn) : client::lookup_result();
  };
  EXPECT_EQ(looked_up(3 * chunk + 5, 0).found_chunks, 3U);
  auto next = looked_up(5 * chunk + 5, 3 * chunk + 5);
  EXPECT_EQ(next.found_chunks, 3U);
  ASSERT_TRUE(next.missing);
  EXPECT_EQ(next.missing->chunk, 3U);
  by().store(digests_of(by(), std::span(prompt).first(5 * chunk)));
  EXPECT_EQ(looked_up(5 * chunk + 5, 5 * chunk + 5).found_chunks, 5U) << "stored since";
}

TEST_F(HeldSession, TheNextSaveHoldsWhatTheNextTurnHas) {
  start();
  auto first = prompt_of(1, 2, 5), second = first;
  second.resize(2 * chunk + 2); // the answer differs inside the tail
  auto more = prompt_of(9, 2);
  second.insert(second.end(), more.begin(), more.end());
  auto session = opened();
  EXPECT_EQ(turn(session, first).held_chunks, 2U);
  auto longer = turn(session, second, 2 * chunk + 2);
  EXPECT_EQ(longer.held_chunks, 4U);
  press();
  EXPECT_EQ(found(second), 4U);
  auto third = prompt_of(3, 3); // a different conversation
  EXPECT_EQ(turn(session, third).held_chunks, 3U);
  press();
  EXPECT_EQ(found(second), 0U) << "what is stale can be evicted once the next turn is saved";
  EXPECT_EQ(found(third), 3U);
  EXPECT_EQ(by()->admin().sessions(patiently())->held_bytes, 3 * physical_bytes);
}

TEST_F(HeldSession, ATurnThatIsNotSavedLeavesWhatIsHeld) {
  start();
  auto prompt = prompt_of(1, 3), aborted = prompt_of(2, 2);
  auto session = opened();
  turn(session, prompt);
  ASSERT_TRUE(session.lookup(aborted, 0, {}, patiently()));
  press();
  EXPECT_EQ(found(prompt), 3U);
  auto restored = session.lookup(prompt, 0, {.lease = true}, patiently());
  ASSERT_TRUE(restored) << restored.error().text;
  EXPECT_EQ(restored->found_chunks, 3U);
  EXPECT_EQ(session.tokens(), prompt.size());
}

TEST_F(HeldSession, HoldsOnlyWhatIsThere) {
  start();
  auto prompt = prompt_of(1, 4);
  auto session = opened();
  EXPECT_EQ(saved(session, prompt).held_chunks, 0U);
  by().store(digests_of(by(), std::span(prompt).first(2 * chunk)));
  auto some = saved(session, prompt, prompt.size());
  EXPECT_EQ(some.held_chunks, 2U);
  EXPECT_TRUE(some.unheld.empty());
  EXPECT_EQ(saved(session, prompt_of(2, 0, 5)).held_chunks, 0U)
      << "no whole chunk: it holds nothing any more";
  EXPECT_EQ(by()->admin().sessions(patiently())->held, 0U);
}

TEST_F(HeldSession, OverTheBoundTheColdestGoesToDiskAndComesBack) {
  start("write_back");
  auto cold = prompt_of(1, 4), warm = prompt_of(2, 4);
  auto first = opened(), second = opened();
  EXPECT_EQ(turn(first, cold).held_chunks, 4U);
  EXPECT_EQ(found(cold, on_disk), 0U);
  EXPECT_EQ(turn(second, warm).held_chunks, 4U);
  EXPECT_EQ(listed(first).held_tokens, 0U);
  EXPECT_EQ(listed(second).held_tokens, 4 * chunk);
  ASSERT_TRUE(eventually([&] { return metric("terrace_sessions_demoted_total", "to=\"disk\"") == 1; }));
  EXPECT_EQ(found(cold, on_disk), 4U);
  EXPECT_EQ(found(cold, on_host), 4U) << "it stays until its memory is needed";
  EXPECT_EQ(found(warm, on_disk), 0U);
  press();
  EXPECT_EQ(found(cold, on_host), 0U);
  EXPECT_EQ(found(warm, on_host), 4U);
  EXPECT_EQ(by().load_and_check(digests_of(by(), cold)), 4U);
  EXPECT_EQ(saved(first, cold, cold.size()).held_chunks, 4U);
  EXPECT_EQ(listed(first).held_tokens, 4 * chunk);
  EXPECT_EQ(listed(second).held_tokens, 0U) << "it is the coldest now";
  ASSERT_TRUE(eventually([&] { return metric("terrace_sessions_demoted_total", "to=\"disk\"") == 2; }));
  press();
  EXPECT_EQ(by().load_and_check(digests_of(by(), warm)), 4U);
}

TEST_F(HeldSession, WithoutADiskTheColdestIsLikeATaggedOne) {
  start();
  auto cold = prompt_of(1, 4), warm = prompt_of(2, 4);
  auto first = opened(), second = opened();
  turn(first, cold);
  turn(second, warm);
  EXPECT_EQ(metric("terrace_sessions_demoted_total", "to=\"none\""), 1);
  EXPECT_EQ(metric("terrace_sessions_demoted_total", "to=\"disk\""), 0);
  EXPECT_EQ(listed(first).held_tokens, 0U);
  EXPECT_EQ(found(cold), 4U);
  press();
  EXPECT_EQ(found(cold), 0U);
  EXPECT_EQ(found(warm), 4U);
  auto again = first.lookup(cold, cold.size(), {}, patiently());
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->found_chunks, 0U) << "a miss, and no error";
}

TEST_F(HeldSession, OneThatIsTooLargeHoldsNothingAndIsToldWhy) {
  start();
  auto other = opened();
  auto small = prompt_of(2, 2);
  turn(other, small);
  auto session = opened();
  auto large = prompt_of(1, held_objects + 1);
  auto refused = turn(session, large);
  EXPECT_EQ(refused.held_chunks, 0U);
  EXPECT_NE(refused.unheld.find("lease.host_percent"), std::string::npos) << refused.unheld;
  EXPECT_EQ(session.tokens(), large.size()) << "the turn is saved";
  EXPECT_EQ(listed(other).held_tokens, 2 * chunk) << "nobody else gives way for it";
  EXPECT_EQ(metric("terrace_sessions_unheld_total"), 1);
  auto fits = turn(session, std::span(large).first(5 * chunk), 5 * chunk);
  EXPECT_EQ(fits.held_chunks, 5U);
}

TEST_F(HeldSession, ColdOnesGiveWayWhenClientsLeaseWhatSessionsCouldHold) {
  start();
  auto cold = opened(), warm = opened();
  EXPECT_EQ(turn(cold, prompt_of(1, 4)).held_chunks, 4U);
  tester other(daemon_->socket(), "other");
  std::vector<client::lease>
      leases; // leases may hold 23 of 31 objects, and one client three quarters of them
  for (uint64_t i = 0; i < 17; ++i) {
    auto one = chain_of(100 + i, 1);
    other.store(one);
    auto found = other.lookup(one, true);
    if (found.found_chunks == 1)
      leases.push_back(std::move(found.held));
  }
  EXPECT_GE(leases.size(), 13U);
  auto kept = turn(warm, prompt_of(2, 4));
  EXPECT_GE(kept.held_chunks, 3U) << "beside four of the cold one there would be no room";
  EXPECT_EQ(listed(cold).held_tokens, 0U);
}

TEST_F(HeldSession, NoNumberOfSessionsStopsAStore) {
  start();
  std::vector<client::session> sessions;
  for (uint32_t i = 1; i <= 40; ++i) {
    sessions.push_back(opened());
    EXPECT_EQ(turn(sessions.back(), prompt_of(i, 2)).held_chunks, 2U);
  }
  EXPECT_LE(by()->admin().sessions(patiently())->held_bytes, held_objects * physical_bytes);
  press();
  EXPECT_EQ(metric("terrace_sessions_demoted_total", "to=\"none\""), 37);
}

TEST_F(HeldSession, ForksShareWhatTheyHold) {
  start();
  auto prompt = prompt_of(1, 4, 7), longer = prompt_of(1, 5);
  auto session = opened();
  turn(session, prompt);
  auto fork = session.fork(prompt.size(), false, patiently());
  ASSERT_TRUE(fork) << fork.error().text;
  EXPECT_EQ(listed(*fork).mode, client::session_mode::held);
  EXPECT_EQ(listed(*fork).held_tokens, 0U) << "until its first turn is saved";
  EXPECT_EQ(turn(*fork, longer, prompt.size()).held_chunks, 5U);
  auto all = by()->admin().sessions(patiently());
  EXPECT_EQ(all->held, 2U);
  EXPECT_EQ(all->held_bytes, 5 * physical_bytes) << "an object counts once";
  EXPECT_EQ(by()->admin().close_session(session.id(), patiently()), true);
  press();
  EXPECT_EQ(found(longer), 5U);
}

TEST_F(HeldSession, AnOperatorRevokesWhatItHolds) {
  start();
  auto prompt = prompt_of(1, 4);
  auto session = opened();
  auto kept = turn(session, prompt);
  ASSERT_TRUE(by()->admin().revoke(kept.lease, patiently()));
  EXPECT_EQ(listed(session).held_tokens, 0U);
  press();
  EXPECT_EQ(found(prompt), 0U);
  EXPECT_EQ(turn(session, prompt, prompt.size()).held_chunks, 4U) << "the session goes on";
}

int hold_until_killed(const std::string& socket, const child_voice& voice) {
  tester by(socket, "victim");
  auto prompt = prompt_of(1, 3), other = prompt_of(2, 3);
  auto ends = by->open_session(by.space(), holds, patiently());
  client::session_options keeping = holds;
  keeping.keep = true;
  auto kept = by->open_session(by.space(), keeping, patiently());
  if (!ends || !kept)
    return 1;
  by.store(digests_of(by, prompt));
  by.store(digests_of(by, other));
  if (!ends->save(prompt, 0, {}, {}, patiently()) || !kept->save(other, 0, {}, {}, patiently()))
    return 1;
  voice.say('s');
  voice.stay();
  return 0;
}

TEST_F(HeldSession, AClientsDeathEndsWhatItsSessionsHoldExceptThoseThatAreKept) {
  start();
  {
    child_process victim(
        [&](const child_voice& voice) { return hold_until_killed(daemon_->socket(), voice); });
    victim.await_word();
    EXPECT_EQ(by()->admin().sessions(patiently())->held, 2U);
    victim.kill();
  }
  ASSERT_TRUE(eventually([&] { return by()->admin().sessions(patiently())->held == 1; }));
  press();
  EXPECT_EQ(found(prompt_of(2, 3)), 3U);
  EXPECT_EQ(found(prompt_of(1, 3)), 0U);
}

TEST_F(HeldSession, AfterARestartTheHandleBeginsAnew) {
  start("write_through");
  auto prompt = prompt_of(1, 4);
  auto session = opened();
  turn(session, prompt);
  ASSERT_EQ(daemon_->terminate(), 0);
  daemon_->start();
  ASSERT_TRUE(daemon_->await_log("4 objects found"));
  EXPECT_FALSE(by()->admin().status(patiently())); // the client notices the loss
  ASSERT_TRUE(eventually([&] { return by()->reconnect(patiently()).has_value(); }));
  auto again = saved(session, prompt, prompt.size());
  EXPECT_EQ(again.held_chunks, 4U) << again.unheld;
}

TEST_F(HeldSession, IsListedByTheCommand) {
  start();
  auto session = opened();
  turn(session, prompt_of(1, 4));
  auto listed = run({program("TERRACE"), "sessions", "--socket", daemon_->socket()});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_NE(listed.out.find("4.02 MiB of host memory held by 1 of them"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("held"), std::string::npos) << listed.out;
  auto json = run({program("TERRACE"), "sessions", "--json", "--socket", daemon_->socket()});
  EXPECT_NE(json.out.find("\"held_tokens\":64"), std::string::npos) << json.out;
}

} // namespace held_session_test
} // namespace terrace::e2e
