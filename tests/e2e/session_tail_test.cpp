// The partial chunk at the end of a session's turn, its pools and cursors: they are saved and found together
// or not at all.
#include "tail_client.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/scrape.hpp"

#include <sstream>

namespace terrace::e2e {
namespace session_tail_test {

using test::child_process;
using test::child_voice;

constexpr uint32_t chunk = space_chunk_tokens; // 16 tokens
constexpr client::session_options holds{.mode = client::session_mode::held};
const std::vector<uint64_t> cursors{7, 1'000'000'007};

/// Attention, and a state of which the last one is needed.
client::space_spec two_pools(uint32_t ranks = 1) {
  auto spec = test_space();
  spec.world_size = ranks;
  spec.pools = {
      {.name = "kv", .object_bytes = 256 << 10},
      {.name = "state", .object_bytes = 64 << 10, .rule = client::hit_rule::trailing_chunks, .trailing = 1}};
  return spec;
}

client::space_spec other_space() {
  auto spec = two_pools();
  spec.model = "other";
  return spec;
}

class SessionTail : public ::testing::Test {
 protected:
  void start(daemon_options options = {}) {
    options.host = "policy = \"lru\"\n";
    options.metrics = "127.0.0.1:" + std::to_string(port_);
    daemon_ = std::make_unique<daemon_under_test>(options);
    if (options.disk_bytes != 0) {
      EXPECT_TRUE(daemon_->await_log("joined"));
    }
    client_ = std::make_unique<tail_client>(daemon_->socket(), two_pools());
  }
  tail_client& by() { return *client_; }

  /// Stores more objects of these sizes than host memory has, so that everything evictable is evicted.
  void press() {
    if (!presser_)
      presser_ = std::make_unique<tail_client>(daemon_->socket(), other_space(), "presser");
    for (int times = 0; times < 5; ++times)
      EXPECT_TRUE(presser_->store(chain_of(1'000 + ++pressed_, 30), {0, 30}, {0, 1}));
  }
  client::session_status status_of(const client::session& one) {
    auto found = by()->admin().session_status_of(one.id(), patiently());
    EXPECT_TRUE(found && *found);
    return found && *found ? **found : client::session_status();
  }
  double metric(const std::string& name) const {
    double sum = 0;
    std::istringstream lines(test::scrape(port_));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(name + "{"))
        sum += std::stod(line.substr(line.rfind(' ')));
    return sum;
  }

  uint16_t port_ = test::free_port();
  std::unique_ptr<daemon_under_test> daemon_;
  std::unique_ptr<tail_client> client_;
  std::unique_ptr<tail_client> presser_;
  uint64_t pressed_ = 0;
};

TEST_F(SessionTail, IsFoundByTheNextTurnByteForByteWithItsCursors) {
  start();
  auto session = by().open();
  auto first = prompt_of(1, 2 * chunk + 5);
  auto saved = by().turn(session, first, 0, cursors);
  EXPECT_EQ(saved.at.tokens, first.size());
  EXPECT_EQ(saved.held_chunks, 0U) << "it is a tagged one";
  auto again = by().find_and_check(session, first, first.size()); // restored, as often as the client wants
  EXPECT_EQ(again.found_chunks, 3U);
  EXPECT_EQ(again.found_tokens, first.size());
  EXPECT_EQ(again.tail_tokens, 5U);
  EXPECT_EQ(again.usable_tokens, 2 * chunk) << "the last token is needed, and a state cannot go back by one";
  EXPECT_EQ(again.cursors, cursors);
  auto second = joined(first, prompt_of(2, 40));
  auto found = by().find_and_check(session, second, first.size());
  EXPECT_EQ(found.found_tokens, first.size());
  EXPECT_EQ(found.usable_tokens, first.size()) << "all that the turn before has left";
  EXPECT_EQ(found.requested_chunks, second.size() / chunk);
  EXPECT_EQ(found.cursors, cursors);
  // Repeats this now that the session has the tokens of this turn, which is not saved.
  EXPECT_EQ(by().find_and_check(session, second, second.size()).found_tokens, first.size());
}

TEST_F(SessionTail, ATurnThatIsAbortedLeavesTheSessionAtItsLastSavedTurn) {
  start();
  auto session = by().open();
  auto first = prompt_of(1, chunk + 5);
  by().turn(session, first, 0, cursors);
  auto aborted = joined(first, prompt_of(2, 6)); // ends in the same chunk
  by().find(session, aborted, first.size());
  ASSERT_TRUE(by().store_turn(session, aborted, aborted.size(), 1, {0, 1}));
  EXPECT_EQ(status_of(session).saved_tokens, first.size());
  auto other = joined({first.begin(), first.begin() + chunk + 2}, prompt_of(3, 9)); // differs inside the tail
  auto found = by().find(session, other, chunk + 2);
  EXPECT_EQ(found.found_tokens, chunk) << "its tail has other tokens";
  EXPECT_TRUE(found.cursors.empty());
  found = by().find_and_check(session, joined(first, prompt_of(4, 3)), chunk + 2);
  EXPECT_EQ(found.found_tokens, first.size()) << "the saved turn again";
  EXPECT_EQ(found.cursors, cursors);
}

TEST_F(SessionTail, WholeChunksBehindItArePreferred) {
  start();
  auto session = by().open();
  auto first = prompt_of(1, chunk + 5), longer = joined(first, prompt_of(2, 2 * chunk));
  by().turn(session, first, 0, cursors);
  by().find(session, longer, first.size());
  ASSERT_TRUE(by().store_turn(session, longer, first.size(), 1, {0, 1})); // the client dies before it saves
  auto found = by().find_and_check(session, longer, longer.size());
  EXPECT_EQ(found.found_tokens, 3 * chunk);
  EXPECT_EQ(found.tail_tokens, 0U);
  EXPECT_TRUE(found.cursors.empty()) << "they are those of another place";
}

TEST_F(SessionTail, ForksShareItUntilTheyAppend) {
  start();
  auto trunk = by().open();
  auto shared = prompt_of(1, 2 * chunk + 5);
  by().turn(trunk, shared, 0, cursors);
  EXPECT_EQ(metric("terrace_tails"), 1);
  auto fork = [&] {
    auto made = trunk.fork(shared.size(), false, patiently());
    EXPECT_TRUE(made) << made.error().text;
    return made ? std::move(*made) : client::session();
  };
  auto left = fork(), right = fork(), kept = fork();
  EXPECT_EQ(metric("terrace_tails"), 1) << "one tail, however many have it";
  auto stored = (*by()).tier("host").objects;
  auto a = joined(shared, prompt_of(2, 4)), b = joined(shared, prompt_of(3, 4));
  by().turn(left, a, shared.size(), cursors);
  by().turn(right, b, shared.size());
  EXPECT_EQ((*by()).tier("host").objects, stored + 4) << "each has a tail of its own, in both pools";
  EXPECT_EQ(by().find_and_check(left, a, a.size()).found_tokens, a.size());
  EXPECT_EQ(by().find_and_check(right, b, b.size()).found_tokens, b.size());
  EXPECT_EQ(by().find_and_check(kept, shared, shared.size()).cursors, cursors);
  by().turn(trunk, joined(shared, prompt_of(4, 4)), shared.size());
  EXPECT_EQ(by().find_and_check(kept, shared, shared.size()).found_tokens, shared.size())
      << "the last one that refers to it";
  kept.close();
  EXPECT_TRUE(eventually([&] { return metric("terrace_tails_removed_total") == 1; }));
  EXPECT_EQ(metric("terrace_tails"), 3);
  EXPECT_TRUE(eventually([&] { return (*by()).tier("host").objects == stored + 4; }))
      << "three tails, less one";
  // A fork before the tail has none.
  auto before = left.fork(2 * chunk, false, patiently());
  ASSERT_TRUE(before);
  EXPECT_EQ(by().find(*before, a, 2 * chunk).found_tokens, 2 * chunk);
}

TEST_F(SessionTail, TheStaleOneIsRemovedAtTheNextSaveAndAllAtTheEnd) {
  start();
  auto session = by().open();
  auto first = prompt_of(1, chunk + 5);
  by().turn(session, first);
  EXPECT_EQ((*by()).tier("host").objects, 4U) << "a chunk and a tail in two pools";
  by().turn(session, joined(first, prompt_of(2, 3)), first.size());
  EXPECT_TRUE(eventually([&] { return (*by()).tier("host").objects == 4U; }));
  auto done = session.save(first, first.size(), {}, {}, patiently()); // saves without the end
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_TRUE(eventually([&] { return (*by()).tier("host").objects == 2U; }));
  EXPECT_EQ(metric("terrace_tails"), 0);
  by().turn(session, first, chunk);
  session.close();
  EXPECT_TRUE(eventually([&] { return (*by()).tier("host").objects == 2U; }));
}

TEST_F(SessionTail, IsSavedInAllPoolsOrNotAtAll) {
  start();
  auto session = by().open();
  auto first = prompt_of(1, chunk + 5), second = joined(first, prompt_of(2, 4));
  by().turn(session, first, 0, cursors);
  ASSERT_TRUE(by().store_turn(session, second, first.size(), 1, {0}));
  auto refused = by().save(session, second, first.size(), cursors);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::not_found);
  EXPECT_NE(refused.error().text.find("pool state of rank 0"), std::string::npos) << refused.error().text;
  EXPECT_EQ(status_of(session).saved_tokens, first.size());
  EXPECT_EQ(by().find_and_check(session, first, first.size()).cursors, cursors) << "its last saved turn";
  ASSERT_TRUE(by().store_turn(session, second, first.size(), 1, {1}));
  ASSERT_TRUE(by().save(session, second, first.size()));
  EXPECT_EQ(by().find_and_check(session, second, second.size()).found_tokens, second.size());
}

TEST_F(SessionTail, IsSavedOnAllRanksOrNotAtAll) {
  start();
  auto spec = two_pools(2);
  tail_client ranks[] = {{daemon_->socket(), spec, "rank 0"},
                         {daemon_->socket(),
                          [&] {
                            auto other = spec;
                            other.rank = 1;
                            return other;
                          }(),
                          "rank 1"}};
  auto session = ranks[0].open();
  auto prompt = prompt_of(1, chunk + 5);
  ASSERT_TRUE(ranks[0].store_turn(session, prompt, 0, 0, {0, 1}));
  auto refused = ranks[0].save(session, prompt, 0);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("pool kv of rank 1"), std::string::npos) << refused.error().text;
  auto same = ranks[1]->adopt_session((*ranks[1]).space(), session.id(), session.at(), {.keep = true});
  ASSERT_TRUE(ranks[1].store_turn(same, prompt, 0, 0, {0, 1}));
  ASSERT_TRUE(ranks[0].save(session, prompt, 0));
  auto found = ranks[0].find_and_check(session, prompt, prompt.size());
  EXPECT_EQ(found.found_tokens, prompt.size());
  ranks[1].check(found.held.id(), prompt, found);
}

TEST_F(SessionTail, AClientThatIsKilledInTheMiddleLeavesTheLastSavedTurn) {
  start();
  auto session = by().open({.keep = true});
  auto first = prompt_of(1, chunk + 5), second = joined(first, prompt_of(2, 4));
  by().turn(session, first, 0, cursors);
  auto objects = (*by()).tier("host").objects;
  child_process victim([&](const child_voice& voice) {
    tail_client other(daemon_->socket(), two_pools(), "victim");
    auto same = other->adopt_session((*other).space(), session.id(), session.at(), {.keep = true});
    if (!other.store_turn(same, second, first.size(), 1, {0}))
      return 1;
    voice.say('s');
    voice.stay();
    return 0;
  });
  ASSERT_EQ(victim.await_word(), 's');
  EXPECT_EQ(metric("terrace_tails"), 2);
  victim.kill();
  EXPECT_TRUE(eventually([&] { return metric("terrace_tails") == 1; }));
  EXPECT_TRUE(eventually([&] { return (*by()).tier("host").objects == objects; }))
      << "what it stored is removed";
  auto found = by().find_and_check(session, first, first.size());
  EXPECT_EQ(found.found_tokens, first.size());
  EXPECT_EQ(found.cursors, cursors);
}

TEST_F(SessionTail, WithoutRoomTheSessionStaysAtItsLastSavedTurn) {
  start();
  auto session = by().open(holds);
  auto first = prompt_of(1, chunk + 5), second = joined(first, prompt_of(2, 4));
  auto saved = by().turn(session, first, 0, cursors);
  EXPECT_EQ(saved.held_chunks, 2U);
  tail_client other(daemon_->socket(), other_space(), "other");
  std::vector<client::lookup_result> leases; // leases on everything there is room for
  for (bool room = true; room;) {
    auto chain = chain_of(100 + leases.size(), 1);
    room = other.store(chain, {0, 1}, {0, 1}).has_value();
    leases.push_back((*other).lookup(chain, true));
  }
  auto stored = by().store_turn(session, second, first.size(), 1, {0, 1});
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::no_space) << stored.error().text;
  auto refused = by().save(session, second, first.size());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::not_found) << refused.error().text;
  leases.clear();
  EXPECT_EQ(by().find_and_check(session, first, first.size()).cursors, cursors);
}

TEST_F(SessionTail, AHeldOneIsKeptAndATaggedOneMayBeGone) {
  start();
  auto held = by().open(holds), tagged = by().open();
  auto mine = prompt_of(1, chunk + 5), other = prompt_of(2, chunk + 5);
  auto saved = by().turn(held, mine, 0, cursors);
  EXPECT_EQ(saved.held_chunks, 2U);
  EXPECT_GT(saved.held_bytes, 2U * ((256U << 10) + 4096)) << "its tail counts";
  by().turn(tagged, other, 0, cursors);
  press();
  auto found = by().find(tagged, other, other.size());
  EXPECT_EQ(found.usable_tokens, 0U);
  EXPECT_TRUE(found.cursors.empty());
  found = by().find_and_check(held, mine, mine.size());
  EXPECT_EQ(found.found_tokens, mine.size());
  EXPECT_EQ(found.cursors, cursors);
  by().check(saved.lease, mine, found); // also under the session's own lease
  EXPECT_EQ(status_of(held).held_tokens, mine.size());
}

TEST_F(SessionTail, GoesToDiskAndComesBack) {
  daemon_options options{.disk_bytes = 64 * mebibyte};
  options.disk = "admission = \"always\"\ndemotion = \"write_back\"\n";
  start(options);
  auto tagged = by().open();
  auto prompt = prompt_of(1, 2 * chunk + 5);
  by().turn(tagged, prompt, 0, cursors);
  press();
  EXPECT_EQ(by().find(tagged, prompt, prompt.size(), false, on_host).found_tokens, 0U);
  auto found = by().find_and_check(tagged, prompt, prompt.size());
  EXPECT_EQ(found.found_tokens, prompt.size());
  EXPECT_EQ(found.cursors, cursors);
  // Tails without references leave both tiers.
  found.held.release();
  auto on_host_now = (*by()).tier("host").objects, on_disk_now = (*by()).tier("disk").objects;
  tagged.close();
  EXPECT_TRUE(eventually([&] {
    return (*by()).tier("host").objects == on_host_now - 2 && (*by()).tier("disk").objects == on_disk_now - 2;
  }));
}

TEST_F(SessionTail, AHeldSessionThatGivesWayHasItsTailOnDisk) {
  daemon_options options{.host_bytes =
                             6 * mebibyte + mebibyte / 2, // a quarter is for sessions: for one of the two
                         .disk_bytes = 192 * mebibyte};
  options.lease = {}; // the default bounds
  options.disk = "admission = \"always\"\ndemotion = \"write_back\"\n";
  start(options);
  auto cold = by().open(holds), warm = by().open(holds);
  auto first = prompt_of(1, 2 * chunk + 5), second = prompt_of(2, 2 * chunk + 5);
  EXPECT_EQ(by().turn(cold, first, 0, cursors).held_chunks, 3U);
  EXPECT_EQ(by().turn(warm, second, 0, cursors).held_chunks, 3U);
  EXPECT_TRUE(eventually([&] { return metric("terrace_sessions_demoted_total") == 1; }));
  press();
  EXPECT_EQ(by().find(cold, first, first.size(), false, on_host).found_tokens, 0U);
  EXPECT_EQ(by().find_and_check(cold, first, first.size()).cursors, cursors);
  EXPECT_EQ(by().find(warm, second, second.size(), false, on_host).found_tokens, second.size());
}

TEST_F(SessionTail, BelongsToSessionsAlone) {
  start();
  auto session = by().open();
  auto prompt = prompt_of(1, chunk + 5);
  by().turn(session, prompt);
  client::lookup_request request;
  request.in = (*by()).space();
  request.what = client::prefix::of_tokens(prompt);
  auto found = by()->lookup(request, patiently());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found_tokens, chunk) << "only whole chunks are shared";
  request.what.tail = true;
  found = by()->lookup(request, patiently());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::bad_request) << found.error().text;
  auto chain = chain_of(1, 1);
  request.what = client::prefix::of_digests(chain);
  request.what.tail = true;
  EXPECT_EQ(by()->lookup(request, patiently()).error().code, errc::bad_request);
}

TEST_F(SessionTail, IsLoadedIntoARegion) {
  start();
  auto session = by().open();
  auto prompt = prompt_of(1, chunk + 5);
  by().turn(session, prompt);
  auto names = kv_chain(prompt);
  auto load = (*by()).load_of(names, {1, 1});
  std::vector<client::run> runs{{.offset = 0, .bytes = 256 << 10}};
  load.what = session.continued(prompt, prompt.size());
  load.what.tail = true;
  load.runs = runs;
  std::vector<uint8_t> first_pool{0};
  load.pools = first_pool;
  auto loaded = by()->load(load, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 1U);
  EXPECT_EQ(loaded->delivered_tokens, 5U);
  EXPECT_TRUE(has_content(content_of(names[1], 0), by().piece(0, 256 << 10)));
}

TEST_F(SessionTail, ATurnThatEndsWithAChunkHasCursorsToo) {
  start();
  auto session = by().open();
  auto prompt = prompt_of(1, 2 * chunk);
  by().turn(session, prompt, 0, cursors);
  EXPECT_EQ(metric("terrace_tails"), 0);
  auto found = by().find_and_check(session, joined(prompt, prompt_of(2, 20)), prompt.size());
  EXPECT_EQ(found.found_tokens, prompt.size());
  EXPECT_EQ(found.cursors, cursors);
  auto wrong = by().save(session, prompt, prompt.size(), std::vector<uint64_t>{1});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, errc::bad_request) << wrong.error().text;
}

TEST_F(SessionTail, AShortPromptHasNothingElse) {
  start();
  auto session = by().open(holds);
  auto prompt = prompt_of(1, 5);
  EXPECT_EQ(by().turn(session, prompt, 0, cursors).held_chunks, 1U);
  press();
  auto found = by().find_and_check(session, joined(prompt, {1, 2, 3}), prompt.size());
  EXPECT_EQ(found.found_tokens, 5U);
  EXPECT_EQ(found.usable_tokens, 5U);
}

TEST_F(SessionTail, ItsLengthsCanBeAskedFor) {
  start();
  auto session = by().open();
  auto first = prompt_of(1, 2 * chunk + 5);
  by().turn(session, first);
  auto now = status_of(session);
  EXPECT_EQ(now.protected_tokens, 2 * chunk);
  EXPECT_EQ(now.committed_tokens, first.size());
  EXPECT_EQ(now.allocated_tokens, first.size());
  EXPECT_EQ(now.own_tokens, chunk) << "its tail, in whole chunks";
  EXPECT_EQ(now.saved_tokens, first.size());
  EXPECT_EQ(now.tail_tokens, 5U);
  EXPECT_FALSE((*by()->admin().session_status_of({}, patiently())).has_value());
  auto listed = run({program("TERRACE"), "sessions", "--json", "--socket", daemon_->socket()});
  EXPECT_NE(listed.out.find("\"own_tokens\":16,"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("\"saved_tokens\":37,"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("\"tail_tokens\":5,"), std::string::npos) << listed.out;
}

} // namespace session_tail_test
} // namespace terrace::e2e
