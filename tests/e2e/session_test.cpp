// Sessions over the socket: turns that send only their new tokens.
#include "tests/support/child_process.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <numeric>

namespace terrace::e2e {
namespace session_test {

using test::child_process;
using test::child_voice;

constexpr uint32_t chunk = space_chunk_tokens; // 16 tokens

std::vector<uint32_t> tokens_from(uint32_t first, size_t count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

client::lookup_request whole(const tester& by, std::span<const uint32_t> prompt) {
  client::lookup_request request;
  request.in = by.space();
  request.what = client::prefix::of_tokens(prompt);
  return request;
}

/// Stores the whole chunks of the prompt.
void store_prompt(tester& by, std::span<const uint32_t> prompt) {
  auto request = whole(by, prompt);
  request.digests = true;
  auto found = by->lookup(request, patiently());
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found->digests.size(), prompt.size() / chunk);
  by.store(found->digests);
}

uint32_t found_by_whole_prompt(tester& by, std::span<const uint32_t> prompt) {
  auto found = by->lookup(whole(by, prompt), patiently());
  EXPECT_TRUE(found) << found.error().text;
  return found ? found->found_chunks : 0;
}

client::session opened(tester& by, const client::session_options& options = {}) {
  auto session = by->open_session(by.space(), options, patiently());
  EXPECT_TRUE(session) << session.error().text;
  return session ? std::move(*session) : client::session();
}

client::lookup_result turn(client::session& of, std::span<const uint32_t> prompt, uint64_t unchanged,
                           bool lease = false) {
  client::lookup_request request;
  request.lease = lease;
  auto found = of.lookup(prompt, unchanged, request, patiently());
  EXPECT_TRUE(found) << found.error().text;
  return found ? std::move(*found) : client::lookup_result();
}

/// Sends exactly what is given, without a second attempt.
result<client::lookup_result> raw_turn(tester& by, const client::prefix& what) {
  client::lookup_request request;
  request.in = by.space();
  request.what = what;
  return by->lookup(request, patiently());
}

TEST(Session, ATurnFindsWhatTheWholePromptFinds) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto prompt = tokens_from(1, 10 * chunk + 5);
  store_prompt(by, std::span(prompt).first(7 * chunk));
  auto session = opened(by);
  uint64_t had = 0;
  for (size_t end : {size_t{20}, size_t{90}, size_t{112}, size_t{113}, prompt.size()}) {
    auto part = std::span(prompt).first(end);
    EXPECT_EQ(session.continued(part, had).tokens.size(), end - had) << "it sends what is new";
    auto found = turn(session, part, had);
    EXPECT_EQ(found.requested_chunks, end / chunk);
    EXPECT_EQ(found.found_chunks, found_by_whole_prompt(by, part)) << end;
    EXPECT_EQ(found.first_token, 0U);
    EXPECT_EQ(session.tokens(), end);
    had = end;
  }
  EXPECT_EQ(turn(session, prompt, had).found_chunks, 7U) << "the same again, without a new token";
}

TEST(Session, ATurnTakesALeaseThatCanBeRead) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto prompt = tokens_from(1, 4 * chunk);
  store_prompt(by, prompt);
  auto session = opened(by);
  turn(session, std::span(prompt).first(2 * chunk), 0);
  auto found = turn(session, prompt, 2 * chunk, true);
  ASSERT_TRUE(found.held);
  auto places = by->read_lease(found.held.id(), {}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  EXPECT_EQ(places->objects.size(), 4U);
}

TEST(Session, ChunksAreStoredAndLoadedByDeltasToo) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto prompt = tokens_from(1, 4 * chunk);
  auto session = opened(by);
  turn(session, std::span(prompt).first(2 * chunk + 3), 0);
  store_prompt(by, std::span(prompt).first(2 * chunk));
  auto store = by.store_of(chain_of(1, 4), {2, 2});
  store.what = session.continued(prompt, 2 * chunk + 3); // the tokens that the model has said
  auto stored = by->store(store, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 2U);
  EXPECT_EQ(session.tokens(), 2 * chunk + 3) << "only a lookup is a turn";
  EXPECT_EQ(found_by_whole_prompt(by, prompt), 4U);
  auto load = by.load_of(chain_of(1, 4), {2, 2});
  load.what = session.continued(prompt, 2 * chunk + 3);
  auto loaded = by->load(load, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 2U);
  EXPECT_EQ(turn(session, prompt, 2 * chunk + 3).found_chunks, 4U);
}

TEST(Session, AWrongBaseSaysTheLengthAndThatTheWholePromptIsNeeded) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto prompt = tokens_from(1, 100);
  auto session = opened(by);
  turn(session, std::span(prompt).first(50), 0);
  auto what = session.continued(prompt, 50);
  std::vector<uint8_t> wrong(what.parent.begin(), what.parent.end());
  wrong[3] ^= 1;
  auto other_digest = what;
  other_digest.parent = wrong;
  auto too_long = what;
  too_long.parent_tokens = 51;
  for (const auto& one : {other_digest, too_long}) {
    auto found = raw_turn(by, one);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, errc::gone);
    EXPECT_NE(found.error().text.find("the session has 50 tokens"), std::string::npos) << found.error().text;
    EXPECT_NE(found.error().text.find("send the whole prompt"), std::string::npos) << found.error().text;
  }
  EXPECT_TRUE(raw_turn(by, what)) << "nothing has changed";
  // The handle was not updated, so it sends the whole prompt by itself.
  EXPECT_EQ(turn(session, prompt, 50).requested_chunks, 6U);
  EXPECT_EQ(session.tokens(), 100U);
}

TEST(Session, ADifferentContinuationIsCutAtTheFirstDifference) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto first = tokens_from(1, 100);
  store_prompt(by, first);
  auto session = opened(by);
  turn(session, first, 0);
  auto in_the_tail = first;
  in_the_tail.resize(98); // the tail begins at 96
  for (uint32_t token : tokens_from(5000, 30))
    in_the_tail.push_back(token);
  EXPECT_EQ(session.continued(in_the_tail, 98).tokens.size(), 30U);
  EXPECT_EQ(turn(session, in_the_tail, 98).found_chunks, 6U);
  auto in_a_chunk = first;
  in_a_chunk.resize(40);
  for (uint32_t token : tokens_from(7000, 30))
    in_a_chunk.push_back(token);
  EXPECT_EQ(session.continued(in_a_chunk, 40).parent_tokens, 32U);
  auto found = turn(session, in_a_chunk, 40);
  EXPECT_EQ(found.found_chunks, 2U);
  EXPECT_EQ(found.found_chunks, found_by_whole_prompt(by, in_a_chunk));
  EXPECT_EQ(session.tokens(), 70U);
  auto inside = session.continued(in_a_chunk, 70);
  inside.parent_tokens = 40; // the daemon no longer knows its tokens
  auto refused = raw_turn(by, inside);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("send the tokens from 32 on"), std::string::npos)
      << refused.error().text;
}

TEST(Session, AForkAndItsOriginalGoOnAlone) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto prompt = tokens_from(1, 100);
  store_prompt(by, prompt);
  auto session = opened(by);
  turn(session, prompt, 0);
  auto in_the_tail = session.fork(98, false, patiently());
  auto in_a_chunk = session.fork(40, false, patiently());
  auto empty = session.fork(0, false, patiently());
  ASSERT_TRUE(in_the_tail && in_a_chunk && empty);
  EXPECT_EQ(in_the_tail->tokens(), 98U);
  EXPECT_EQ(in_a_chunk->tokens(), 32U);
  EXPECT_EQ(empty->tokens(), 0U);
  auto other = prompt;
  other.resize(98);
  for (uint32_t token : tokens_from(9000, 30))
    other.push_back(token);
  EXPECT_EQ(turn(*in_the_tail, other, 98).found_chunks, 6U);
  EXPECT_EQ(turn(*in_a_chunk, prompt, 40).found_chunks, 6U);
  EXPECT_EQ(turn(*empty, prompt, 0).found_chunks, 6U);
  EXPECT_EQ(in_the_tail->tokens(), 128U);
  EXPECT_EQ(session.tokens(), 100U);
  EXPECT_TRUE(raw_turn(by, session.continued(prompt, 100))) << "the original is as it was";
  auto beyond = session.fork(101, false, patiently());
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, errc::bad_request);
}

TEST(Session, AnotherConnectionContinuesItById) {
  daemon_under_test daemon;
  tester by(daemon.socket()), other(daemon.socket(), "other");
  auto prompt = tokens_from(1, 70);
  store_prompt(by, prompt);
  auto session = opened(by);
  turn(session, std::span(prompt).first(50), 0);
  auto same = other->adopt_session(other.space(), session.id(), session.at(), {.keep = true});
  EXPECT_EQ(turn(same, prompt, 50).found_chunks, 4U);
  auto stale = raw_turn(by, session.continued(prompt, 50)); // the other handle has moved the session
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, errc::gone);
  EXPECT_NE(stale.error().text.find("the session has 70 tokens"), std::string::npos) << stale.error().text;
}

TEST(Session, IsOfOneSpace) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto spec = test_space();
  spec.revision = "another";
  auto other = by->open_space(spec, patiently());
  ASSERT_TRUE(other);
  auto prompt = tokens_from(1, 60);
  auto session = opened(by);
  turn(session, prompt, 0);
  client::lookup_request request;
  request.in = *other;
  request.what = session.continued(prompt, 60);
  auto found = by->lookup(request, patiently());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::bad_request);
}

TEST(Session, IsUnknownInAnotherTrustGroup) {
  daemon_under_test daemon({.host_bytes = 64 * mebibyte});
  daemon.configure({.host_bytes = 64 * mebibyte,
                    .listen = "[[listen]]\npath = \"" + daemon.socket() +
                              "\"\ngroup = \"one\"\n[[listen]]\npath = \"" + daemon.second_socket() +
                              "\"\ngroup = \"two\"\n"});
  daemon.kill();
  daemon.start();
  tester by(daemon.socket()), other(daemon.second_socket(), "other");
  auto prompt = tokens_from(1, 60);
  auto session = opened(by);
  turn(session, prompt, 0);
  auto found = raw_turn(other, session.continued(prompt, 60));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::gone);
  EXPECT_FALSE(*other->admin().close_session(session.id(), patiently()));
  EXPECT_EQ(other->admin().sessions(patiently())->count, 0U);
  EXPECT_TRUE(raw_turn(by, session.continued(prompt, 60)));
}

TEST(Session, TheHandleClosesItUnlessItIsKept) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  client::session_id kept;
  {
    auto one = opened(by), other = opened(by, {.keep = true});
    kept = other.id();
    EXPECT_EQ(by->admin().sessions(patiently())->count, 2U);
  }
  auto left = by->admin().sessions(patiently());
  ASSERT_TRUE(left);
  ASSERT_EQ(left->sessions.size(), 1U);
  EXPECT_EQ(left->sessions[0].session, kept);
}

/// Opens two sessions, one of them kept, and waits to be killed. Says the id of the kept one, byte by byte.
int open_until_killed(const std::string& socket, const child_voice& voice) {
  tester by(socket, "victim");
  auto ends = opened(by), kept = opened(by, {.keep = true});
  auto prompt = tokens_from(1, 50);
  turn(ends, prompt, 0);
  turn(kept, prompt, 0);
  for (uint8_t byte : kept.id().bytes)
    voice.say(static_cast<char>(byte));
  voice.stay();
  return 0;
}

TEST(Session, AClientsDeathEndsItsSessionsExceptThoseThatAreKept) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  client::session_id id;
  {
    child_process victim([&](const child_voice& voice) { return open_until_killed(daemon.socket(), voice); });
    for (uint8_t& byte : id.bytes)
      byte = static_cast<uint8_t>(victim.await_word());
    EXPECT_EQ(by->admin().sessions(patiently())->count, 2U);
    victim.kill();
  }
  ASSERT_TRUE(eventually([&] { return by->admin().sessions(patiently())->count == 1; }));
  auto left = by->admin().sessions(patiently());
  EXPECT_EQ(left->sessions[0].connection, connection_id{});
  EXPECT_EQ(left->sessions[0].committed_tokens, 50U);
  auto mine = by->adopt_session(by.space(), id, {}, {.keep = true});
  auto prompt = tokens_from(1, 60);
  EXPECT_EQ(turn(mine, prompt, 0).requested_chunks,
            3U); // a client that was not told its digest sends the whole prompt
  EXPECT_EQ(by->admin().sessions(patiently())->sessions[0].committed_tokens, 60U);
}

TEST(Session, IsGoneAfterARestartAndTheHandleBeginsAnew) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto prompt = tokens_from(1, 60);
  auto session = opened(by, {.keep = true});
  turn(session, std::span(prompt).first(50), 0);
  daemon.kill();
  daemon.start();
  EXPECT_FALSE(by->admin().status(patiently())); // the client notices the loss
  ASSERT_TRUE(eventually([&] { return by->reconnect(patiently()).has_value(); }));
  auto stale = raw_turn(by, session.continued(prompt, 50));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, errc::gone);
  auto old = session.id();
  EXPECT_EQ(turn(session, prompt, 50).requested_chunks, 3U);
  EXPECT_NE(session.id(), old);
  EXPECT_EQ(session.tokens(), 60U);
  EXPECT_EQ(session.continued(prompt, 60).tokens.size(), 0U);
}

TEST(Session, BeyondTheBoundTheLeastRecentlyUsedOneOfTheSameConnectionEnds) {
  auto port = test::free_port();
  // One session for each 32 KiB of memory for requests: 512.
  daemon_under_test daemon(
      {.connection = "group_bytes = \"16MiB\"\n", .metrics = "127.0.0.1:" + std::to_string(port)});
  tester by(daemon.socket()), other(daemon.socket(), "other");
  auto prompt = tokens_from(1, 60);
  auto theirs = opened(other), first = opened(by), second = opened(by);
  turn(first, prompt, 0);
  std::vector<client::session> more;
  while (more.size() < 510)
    more.push_back(opened(by));
  auto third = opened(by);
  auto found = raw_turn(by, second.continued(prompt, 0));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::gone);
  EXPECT_TRUE(raw_turn(by, first.continued(prompt, 60)));
  EXPECT_TRUE(raw_turn(other, theirs.continued(prompt, 0)));
  EXPECT_EQ(turn(second, prompt, 0).requested_chunks, 3U) << "the handle opens another one";
  EXPECT_EQ(by->admin().sessions(patiently())->count, 513U);
  auto served = test::scrape(port);
  EXPECT_NE(served.find("terrace_sessions_evicted_total{group=\"default\"} 2\n"), std::string::npos);
  EXPECT_NE(served.find("terrace_sessions{group=\"default\"} 513\n"), std::string::npos);
  EXPECT_NE(served.find("terrace_session_turns_total{group=\"default\"} 4\n"), std::string::npos);
}

TEST(Session, AreListedAndClosedByTheCommand) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto session = opened(by);
  turn(session, tokens_from(1, 60), 0);
  auto terrace = [&](std::vector<std::string> words) {
    words.insert(words.begin(), program("TERRACE"));
    words.insert(words.end(), {"--socket", daemon.socket()});
    return run(words);
  };
  auto listed = terrace({"sessions", "--json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_NE(listed.out.find("\"count\":1,"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("\"tokens\":60,"), std::string::npos) << listed.out;
  auto place = listed.out.find("\"session\":\"");
  ASSERT_NE(place, std::string::npos) << listed.out;
  auto id = listed.out.substr(place + 11, 32);
  EXPECT_NE(terrace({"sessions"}).out.find(id), std::string::npos);
  EXPECT_NE(terrace({"status"}).out.find("1 session"), std::string::npos);
  EXPECT_EQ(terrace({"sessions", "close", id}).out, "the session is closed\n");
  EXPECT_EQ(terrace({"sessions", "close", id}).out, "there is no such session\n");
  EXPECT_EQ(terrace({"sessions", "close", "abc"}).exit_code, 2);
  EXPECT_EQ(by->admin().sessions(patiently())->count, 0U);
}

TEST(Session, RefusesWhatItDoesNotSupport) {
  daemon_under_test daemon;
  tester by(daemon.socket());
  auto session = opened(by);
  auto prompt = tokens_from(1, 20);
  auto what = session.continued(prompt, 0);
  auto tagged = what;
  std::vector<std::string_view> tags{"tag"};
  tagged.tags = tags;
  auto salted = what;
  salted.salt = "salt";
  for (const auto& one : {tagged, salted}) {
    auto found = raw_turn(by, one);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, errc::bad_request);
  }
}

} // namespace session_test
} // namespace terrace::e2e
