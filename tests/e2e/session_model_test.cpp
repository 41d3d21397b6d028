// Compares sessions with a model that is obviously right: it knows each session's tokens, and checks whether
// what a session holds is there.
//
// Random turns that continue or differ, aborted ones, saves with their partial chunk and without, forks,
// closes, late saves, clients that leave or are killed, restarts of the daemon, and stores that evict
// whatever nobody holds. After each step every possible question is asked, and now and then the daemon
// recounts everything.
#include "tail_client.hpp"
#include "tests/support/child_process.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>

namespace terrace::e2e {
namespace session_model_test {

constexpr uint32_t chunk = space_chunk_tokens;
constexpr uint64_t most_held = 7; // objects: 25 % of 32 MiB
constexpr size_t most_chunks = 9; // chunks of a prompt: some are too many to be held
constexpr size_t most_sessions = 6;

using prompt = std::vector<uint32_t>;

/// The expected state of one session.
struct expected_session {
  size_t owner = 0;
  client::session handle;
  prompt now;   ///< after its last lookup or save
  prompt saved; ///< after its last save
  prompt end;   ///< equal to `saved` if that was saved with its end
  bool held_mode = false;
  bool keep = false;
};

class SessionModel : public ::testing::TestWithParam<uint32_t> {
 protected:
  SessionModel() : random_(GetParam()) {
    daemon_options options{.host = "policy = \"lru\"\n", .disk_bytes = 64 * mebibyte};
    options.lease = {}; // the default bounds
    daemon_ = std::make_unique<daemon_under_test>(options);
    EXPECT_TRUE(daemon_->await_log("joined"));
    for (auto& one : clients_)
      one = std::make_unique<tester>(daemon_->socket());
  }

  size_t any(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  bool one_in(size_t n) { return any(n) == 0; }

  /// Continues a prompt with few different pieces, so that sessions share chunks.
  void continue_prompt(prompt& of) {
    if (one_in(3) && !of.empty())
      of.resize(any(of.size() + 1));
    size_t more = any(3 * chunk);
    auto piece = static_cast<uint32_t>(1 + any(3));
    for (size_t i = 0; i < more && of.size() < most_chunks * chunk; ++i)
      of.push_back(piece);
  }
  static bool begins_with(const prompt& of, const prompt& begin) {
    return begin.size() <= of.size() && std::equal(begin.begin(), begin.end(), of.begin());
  }
  /// Returns the cursor that is saved for this end.
  static std::vector<uint64_t> cursor_of(const prompt& end) { return {kv_of(end).bytes[3] + 1U}; }

  static uint64_t same_tokens(const prompt& a, const prompt& b) {
    auto differs = std::ranges::mismatch(a, b).in1;
    return static_cast<uint64_t>(differs - a.begin());
  }

  static std::vector<digest> digests_of(tester& by, const prompt& of) {
    if (of.empty())
      return {};
    client::lookup_request request;
    request.in = by.space();
    request.what = client::prefix::of_tokens(of);
    request.digests = true;
    auto found = by->lookup(request, patiently());
    EXPECT_TRUE(found) << found.error().text;
    return found ? found->digests : std::vector<digest>();
  }
  /// Returns the chunks found. A prompt without a whole chunk has nothing to find.
  static uint32_t found_of(tester& by, const std::vector<digest>& chain, uint32_t tiers = 0) {
    return chain.empty() ? 0 : by.lookup(chain, false, tiers).found_chunks;
  }

  // ---- steps ----

  void open() {
    if (sessions_.size() >= most_sessions)
      return;
    expected_session made;
    made.owner = any(clients_.size());
    made.held_mode = !one_in(3);
    made.keep = one_in(3);
    client::session_options options;
    options.mode = made.held_mode ? client::session_mode::held : client::session_mode::tagged;
    options.keep = made.keep;
    auto& by = *clients_[made.owner];
    auto opened = by->open_session(by.space(), options, patiently());
    ASSERT_TRUE(opened) << opened.error().text;
    made.handle = std::move(*opened);
    sessions_.push_back(std::move(made));
  }

  /// Plays a turn: a lookup, usually with a store and a save; otherwise it is aborted.
  void turn(expected_session& of) {
    tester& by = *clients_[of.owner];
    prompt next = of.now;
    continue_prompt(next);
    if (next.empty())
      return;
    uint64_t same = same_tokens(of.now, next);
    client::lookup_request request;
    request.lease = one_in(2);
    request.what.tail = one_in(2);
    auto found = of.handle.lookup(next, same, request, patiently());
    ASSERT_TRUE(found) << found.error().text;
    auto chain = digests_of(by, next);
    check_found(of, next, *found, request.what.tail, found_of(by, chain));
    of.now = next;
    check_lengths(of);
    found->held.release();
    if (one_in(4))
      return;
    if (!chain.empty()) {
      by.store(chain);
      by.load_and_check(chain); // compares every byte of what is there
    }
    continue_prompt(next); // the answer; its chunks are not stored
    if (!next.empty())
      save(of, next);
  }

  /// `whole`: chunks of the prompt that are present.
  void check_found(const expected_session& of, const prompt& next, const client::lookup_result& found,
                   bool tail, uint64_t whole) {
    bool continues = tail && !of.end.empty() && begins_with(next, of.end);
    bool at_end = continues && of.end.size() % chunk != 0 && whole == of.end.size() / chunk &&
                  found.found_tokens == of.end.size();
    if (!at_end) {
      EXPECT_EQ(found.found_tokens, whole * chunk) << "as the whole prompt finds";
    }
    EXPECT_EQ(found.tail_tokens, at_end ? of.end.size() % chunk : 0U);
    bool ends_there = continues && found.found_tokens == of.end.size();
    EXPECT_EQ(found.cursors, ends_there ? cursor_of(of.end) : std::vector<uint64_t>());
    if (!at_end || !found.held)
      return;
    tester& by = *clients_[of.owner];
    auto place = by->read_lease(found.held.id(), {found.found_chunks - 1, 1}, patiently());
    ASSERT_TRUE(place) << place.error().text;
    EXPECT_TRUE(has_content(kv_of(of.end), place->objects[0])) << "the tail has the bytes of its tokens";
  }

  void store_tail(tester& by, const expected_session& of, const prompt& next, uint64_t same) {
    auto whole = static_cast<uint32_t>(next.size() / chunk);
    auto names = kv_chain(next);
    fill_content(names.back(), by.piece(0));
    auto request = by.store_of(names, {whole, 1});
    request.what = of.handle.continued(next, same);
    request.what.tail = true;
    auto stored = by->store(request, patiently());
    ASSERT_TRUE(stored) << stored.error().text;
  }

  /// Returns false if not all of its end was stored, and the session is unchanged.
  bool save_end(expected_session& of, const prompt& next, uint64_t same,
                result<client::saved_session>& done) {
    tester& by = *clients_[of.owner];
    bool stores = !one_in(4);
    if (stores && next.size() % chunk != 0)
      store_tail(by, of, next, same);
    done = of.handle.save_with_tail(next, same, cursor_of(next), {}, {}, patiently());
    if (done || stores)
      return true;
    EXPECT_EQ(done.error().code, errc::not_found) << done.error().text;
    auto now = by->admin().session_status_of(of.handle.id(), patiently());
    EXPECT_TRUE(now && *now && (*now)->saved_tokens == of.end.size());
    return false;
  }

  void save(expected_session& of, const prompt& next) {
    tester& by = *clients_[of.owner];
    auto before = held_now();
    uint64_t same = same_tokens(of.now, next);
    auto present = found_of(by, digests_of(by, next), on_host);
    result<client::saved_session> done = client::saved_session();
    bool with_end = one_in(2);
    if (!with_end)
      done = of.handle.save(next, same, {}, {}, patiently());
    else if (!save_end(of, next, same, done))
      return;
    ASSERT_TRUE(done) << done.error().text;
    of.now = of.saved = next;
    of.end = with_end ? next : prompt();
    if (!of.held_mode) {
      EXPECT_EQ(done->held_chunks, 0U);
      return;
    }
    if (done->unheld.empty()) {
      EXPECT_GE(done->held_chunks, std::min<uint64_t>(present, most_held)) << present;
    }
    // A session that fits together with what is held now loses nothing.
    auto after = held_now();
    std::set<digest> objects;
    for (const auto& [id, chain] : before)
      if (id != of.handle.id())
        objects.insert(chain.begin(), chain.end());
    if (auto mine = after.find(of.handle.id()); mine != after.end())
      objects.insert(mine->second.begin(), mine->second.end());
    if (objects.size() <= most_held) {
      for (const auto& [id, chain] : before)
        if (id != of.handle.id()) {
          EXPECT_EQ(after[id], chain) << "nothing had to give way";
        }
    }
  }

  void late_save(expected_session& of) {
    tester& by = *clients_[of.owner];
    if (of.now.empty())
      return;
    auto stale = by->adopt_session(by.space(), of.handle.id(), {of.now.size() + 1, of.handle.at().last, 32},
                                   {.keep = true});
    client::lookup_request request;
    request.in = by.space();
    request.what = stale.continued(prompt(of.now.size() + 2, 9), of.now.size() + 1);
    auto found = by->lookup(request, patiently());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, errc::gone) << found.error().text;
  }

  void fork(const expected_session& of) {
    if (sessions_.size() >= most_sessions)
      return;
    auto made = of.handle.fork(any(of.now.size() + 1), one_in(3), patiently());
    ASSERT_TRUE(made) << made.error().text;
    expected_session forked;
    forked.owner = of.owner;
    forked.held_mode = of.held_mode;
    forked.now.assign(of.now.begin(), of.now.begin() + static_cast<std::ptrdiff_t>(made->tokens()));
    if (begins_with(forked.now, of.end))
      forked.end = of.end;
    forked.handle = std::move(*made);
    forks_.push_back(std::move(forked)); // `of` is in `sessions_`
  }

  void close(size_t which) {
    auto& of = sessions_[which];
    auto closed = (*clients_[of.owner])->admin().close_session(of.handle.id(), patiently());
    ASSERT_TRUE(closed) << closed.error().text;
    EXPECT_TRUE(*closed);
    EXPECT_EQ((*clients_[of.owner])->admin().close_session(of.handle.id(), patiently()), false);
    sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  /// Makes everything that nobody holds leave host memory.
  void press() {
    for (uint64_t i = 0; i < 5; ++i)
      EXPECT_EQ(clients_[0]->store(chain_of(1'000 + ++pressed_, 8)), 8U);
  }

  /// Ends a client and its sessions, and connects another one.
  void replace_client(size_t which) {
    std::erase_if(sessions_, [which](const auto& one) { return one.owner == which; });
    clients_[which] = std::make_unique<tester>(daemon_->socket());
    auto& by = *clients_[1 - which];
    ASSERT_TRUE(eventually([&] {
      auto all = listed_by(by);
      return std::ranges::none_of(all.sessions, [&](const auto& one) {
        return one.connection != connection_id{} && !is_known(one.session);
      });
    }));
    for (const auto& one : listed_by(by).sessions) // kept sessions have no owner any more
      if (!is_known(one.session)) {
        ASSERT_EQ(by->admin().close_session(one.session, patiently()), true);
      }
  }

  /// Saves what nobody else has, and waits to be killed.
  static int save_until_killed(const std::string& socket, bool held, bool keep, uint32_t piece,
                               const test::child_voice& voice) {
    tester by(socket, "victim");
    client::session_options options;
    options.mode = held ? client::session_mode::held : client::session_mode::tagged;
    options.keep = keep;
    auto session = by->open_session(by.space(), options, patiently());
    prompt all(3 * chunk + 5, piece);
    if (!session || !session->lookup(all, 0, {.lease = true}, patiently()))
      return 1;
    by.store(digests_of(by, all));
    if (!session->save(all, all.size(), {}, {}, patiently()))
      return 1;
    voice.say('s');
    voice.stay();
    return 0;
  }

  /// Kills a process between a save and its next turn. Its session ends with it unless it is kept, and then
  /// still holds what it held.
  void kill_a_client() {
    bool held = one_in(2), keep = one_in(2);
    auto piece = static_cast<uint32_t>(50 + any(3));
    tester& by = *clients_[0];
    {
      test::child_process victim([&](const test::child_voice& voice) {
        return save_until_killed(daemon_->socket(), held, keep, piece, voice);
      });
      ASSERT_EQ(victim.await_word(), 's');
      victim.kill();
    }
    auto orphans = [&] {
      auto all = listed_by(by).sessions;
      std::erase_if(all, [&](const auto& one) { return is_known(one.session); });
      return all;
    };
    ASSERT_TRUE(eventually([&] {
      auto left = orphans();
      return left.size() == (keep ? 1 : 0) && (left.empty() || left[0].connection == connection_id{});
    }));
    for (const auto& one : orphans()) {
      EXPECT_EQ(one.committed_tokens, 3 * chunk + 5);
      EXPECT_EQ(one.held_tokens, held ? 3 * chunk : 0);
      ASSERT_EQ(by->admin().close_session(one.session, patiently()), true);
    }
  }

  void restart() {
    daemon_->kill();
    daemon_->start();
    EXPECT_TRUE(daemon_->await_log("joined"));
    sessions_.clear();
    for (auto& one : clients_)
      one = std::make_unique<tester>(daemon_->socket());
  }

  // ---- what must hold ----

  static client::sessions_status listed_by(tester& by) {
    auto all = by->admin().sessions(patiently());
    if (!all)
      throw std::runtime_error(all.error().text);
    return *all;
  }

  bool is_known(const client::session_id& id) const {
    return std::ranges::any_of(sessions_, [&](const auto& one) { return one.handle.id() == id; });
  }

  void check_lengths(const expected_session& of) { EXPECT_EQ(of.handle.tokens(), of.now.size()); }

  /// Returns what each session holds, as the daemon lists it; tails are named by their content.
  std::map<client::session_id, std::vector<digest>> held_now() {
    std::map<client::session_id, std::vector<digest>> held;
    auto& by = *clients_[0];
    for (const auto& one : listed_by(by).sessions) {
      if (one.held_tokens == 0)
        continue;
      auto of = std::ranges::find_if(sessions_, [&](const auto& s) { return s.handle.id() == one.session; });
      EXPECT_NE(of, sessions_.end());
      if (of == sessions_.end())
        continue;
      auto chain = digests_of(by, of->saved);
      EXPECT_LE(one.held_tokens / chunk, chain.size());
      chain.resize(std::min<size_t>(chain.size(), one.held_tokens / chunk));
      if (one.held_tokens % chunk != 0)
        chain.push_back(kv_of(of->saved));
      held[one.session] = chain;
    }
    return held;
  }

  void check_all() {
    auto& by = *clients_[0];
    auto all = listed_by(by);
    EXPECT_EQ(all.count, sessions_.size());
    for (const auto& one : all.sessions) {
      auto of = std::ranges::find_if(sessions_, [&](const auto& s) { return s.handle.id() == one.session; });
      ASSERT_NE(of, sessions_.end());
      EXPECT_EQ(one.committed_tokens, of->now.size());
      EXPECT_EQ(one.protected_tokens, of->now.size() / chunk * chunk);
      EXPECT_LE(one.protected_tokens, one.committed_tokens);
      EXPECT_LE(one.committed_tokens, one.allocated_tokens);
      EXPECT_EQ(one.mode == client::session_mode::held, of->held_mode);
    }
    for (auto [id, chain] : held_now()) {
      auto of = std::ranges::find_if(sessions_, [&](const auto& s) { return s.handle.id() == id; });
      ASSERT_NE(of, sessions_.end());
      if (chain.size() > of->saved.size() / chunk)
        check_held_tail(*of, chain);
      EXPECT_EQ(found_of(by, chain), chain.size()) << "what a session holds is there";
    }
  }

  /// The tail is the last of what it holds; it is removed from `chain`.
  void check_held_tail(expected_session& of, std::vector<digest>& chain) {
    chain.pop_back();
    EXPECT_EQ(of.end, of.saved);
    if (!begins_with(of.now, of.end))
      return;
    client::lookup_request request;
    request.what.tail = true;
    auto found = of.handle.lookup(of.now, of.now.size(), request, patiently());
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_GE(found->found_tokens, of.end.size()) << "a tail that is held is found";
  }

  void step() {
    size_t which = sessions_.empty() ? 0 : any(sessions_.size());
    switch (sessions_.empty() ? 0 : any(16)) {
      case 0:
      case 1: open(); break;
      case 2: fork(sessions_[which]); break;
      case 3: close(which); break;
      case 4: late_save(sessions_[which]); break;
      case 5:
      case 6: press(); break;
      case 7:
        if (one_in(3))
          replace_client(any(clients_.size()));
        else if (one_in(2))
          kill_a_client();
        break;
      case 8:
        if (one_in(5))
          restart();
        break;
      default: turn(sessions_[which]); break;
    }
    std::ranges::move(forks_, std::back_inserter(sessions_));
    forks_.clear();
  }

  std::mt19937 random_;
  std::unique_ptr<daemon_under_test> daemon_;
  std::array<std::unique_ptr<tester>, 2> clients_;
  std::vector<expected_session> sessions_, forks_;
  uint64_t pressed_ = 0;
};

TEST_P(SessionModel, HoldsAfterEveryStep) {
  for (int n = 0; n < 120 && !HasFatalFailure() && !HasFailure(); ++n) {
    SCOPED_TRACE("step " + std::to_string(n));
    step();
    check_all();
    if (n % 10 == 9) {
      EXPECT_TRUE(daemon_->check());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SessionModel, ::testing::Range(1U, 7U));

} // namespace session_model_test
} // namespace terrace::e2e
