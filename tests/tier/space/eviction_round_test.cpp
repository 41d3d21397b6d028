// Tests which victims leave so that the waiting request fits, and how a round ends without any.
#include "tier/space/eviction_round.hpp"

#include "tests/tier/round_fixture.hpp"

using namespace terrace;
using namespace terrace::test;

namespace {

struct EvictionRound : round_fixture {
  using stage = eviction_round::stage;

  /// Makes eight objects of a page, which fill the arena.
  std::vector<extent> fill() { return take(numbers(8, 1)); }
};

} // namespace

TEST_F(EvictionRound, GoesThroughItsStages) {
  fill();
  auto waiting = ask({1});
  ASSERT_EQ(wanted(), page);
  EXPECT_EQ(round->now(), stage::asked);
  round->offer({{}, {to_entry_key(key_of(3))}, {{}}, page});
  EXPECT_EQ(round->now(), stage::offered);
  round->choose(objects);
  EXPECT_EQ(round->now(), stage::evicting);
  EXPECT_EQ(round->evict(objects).freed.size(), 1u);
  EXPECT_EQ(round->now(), stage::idle);
  EXPECT_FALSE(round->failed());
  EXPECT_FALSE(*waiting) << "the space is on its way";
  queue->end_round(std::move(round));
  EXPECT_TRUE(*waiting);
}

TEST_F(EvictionRound, LetsThoseGoThatMakeARunWithWhatIsFree) {
  auto taken = fill();
  queue->free({taken[0], taken[2]});
  auto waiting = ask({2});
  EXPECT_EQ(wanted(), 2 * page) << "two pages are free, but they are no neighbours";
  EXPECT_EQ(round->missing_bytes(), 0u);
  EXPECT_EQ(make_room({6, 4, 3, 1}), (numbers{3})) << "beside the free page at 2";
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::ok);
  EXPECT_EQ(asked, (std::vector<uint64_t>{2 * page, 8 * page}));
}

TEST_F(EvictionRound, LetsNothingGoWhenAllThatMayLeaveIsNotEnough) {
  fill();
  auto waiting = ask({3});
  EXPECT_EQ(make_room({0, 2, 4}), numbers{});
  EXPECT_FALSE(*waiting);
  EXPECT_EQ(free_bytes(), 0u);
  EXPECT_EQ(asked, (std::vector<uint64_t>{3 * page, 12 * page}));
  EXPECT_EQ(wanted(), 0u) << "until something else may leave";
  queue->more_evictable();
  EXPECT_EQ(make_room({0, 2, 4, 6, 5}), (numbers{4, 5, 6}));
  EXPECT_TRUE(*waiting);
}

TEST_F(EvictionRound, ThatAllVictimsAreNotEnoughForOneIsNotHeldAgainstTheNext) {
  fill();
  auto of = context();
  auto large = ask({4}, true, of);
  EXPECT_EQ(make_room({0, 2}), numbers{});
  of->ended = errc::cancelled;
  queue->sweep();
  EXPECT_TRUE(*large);
  auto small = ask({1});
  EXPECT_EQ(make_room({0, 2}), (numbers{0}));
  EXPECT_TRUE(*small);
}

TEST_F(EvictionRound, EndsWhenNobodyNeedsTheVictimsAnyMore) {
  fill();
  auto of = context();
  auto waiting = ask({2}, true, of);
  ASSERT_NE(wanted(), 0u);
  of->ended = errc::cancelled;
  EXPECT_EQ(make_room({0, 1, 2}), numbers{});
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::cancelled);
}

TEST_F(EvictionRound, MakesNoRoomForThoseOfAGroupThatHaveEnded) {
  queue = make(64);
  take(numbers(64, 1));
  auto of = context();
  auto first = ask({1}, true, of), second = ask({1});
  ASSERT_EQ(wanted(), 2 * page);
  of->ended = errc::cancelled;
  EXPECT_EQ(make_room({5, 6}), (numbers{5}));
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->failure.code, errc::ok);
}

TEST_F(EvictionRound, LetsNothingGoWhenSpaceCameBackMeanwhile) {
  auto taken = fill();
  auto waiting = ask({1});
  ASSERT_NE(wanted(), 0u);
  EXPECT_TRUE(round->put_back({taken[7]}));
  EXPECT_EQ(make_room({0}), numbers{});
  EXPECT_TRUE(*waiting);
  EXPECT_EQ(free_bytes(), 0u);
  ask({1});
  EXPECT_EQ(wanted(), page) << "that round has not failed";
}

TEST_F(EvictionRound, NeverLetsGoWhatIsHeldAndAsksForOthers) {
  fill();
  auto waiting = ask({1});
  std::vector<object_id> held;
  meanwhile = [&] { held = hold(0); };
  EXPECT_EQ(make_room({0, 1}), (numbers{1}));
  EXPECT_EQ(asked, (std::vector<uint64_t>{page, page})) << "it was leased after it was named";
  EXPECT_TRUE(*waiting);
}

TEST_F(EvictionRound, AsksAgainWhenSomethingMayLeaveThatThePolicyDidNotKnow) {
  fill();
  auto waiting = ask({1});
  auto held = hold(0);
  meanwhile = [&] {
    objects.release(held);
    round->more_evictable();
  };
  EXPECT_EQ(make_room({0}), (numbers{0}));
  EXPECT_TRUE(*waiting);
  EXPECT_EQ(asked.size(), 2u);
}

TEST_F(EvictionRound, DoesNotFailWhenSomethingBecomesEvictableBeforeItIsBack) {
  fill();
  auto waiting = ask({1}, false);
  ASSERT_NE(wanted(), 0u);
  round->offer({});
  round->choose(objects);
  round->evict(objects);
  ASSERT_TRUE(round->failed());
  round->more_evictable();
  queue->end_round(std::move(round));
  EXPECT_FALSE(*waiting) << "it is not refused";
  EXPECT_EQ(wanted(), page);
}

TEST_F(EvictionRound, EndsWithoutAPolicy) {
  fill();
  auto waiting = ask({1}, false);
  ASSERT_NE(wanted(), 0u);
  round->give_up("the eviction policy has ended");
  queue->end_round(std::move(round));
  ASSERT_TRUE(*waiting);
  EXPECT_NE((*waiting)->failure.text.find("the eviction policy has ended"), std::string::npos);
}

TEST_F(EvictionRound, AheadOfNeedVictimsLeaveInTheirOrder) {
  queue = make(8, 2 * page);
  fill();
  EXPECT_EQ(make_room({5, 2, 7}), (numbers{2, 5}));
  EXPECT_EQ(free_bytes(), 2 * page);
  EXPECT_EQ(wanted(), 0u);
}

TEST(VictimChoice, AVictimTakesAlongWhatWasNamedBelowIt) {
  // Two chains are named from their ends: c over b over a, and y over x.
  entry_key a{1, 1}, b{1, 2}, c{1, 3}, x{2, 1}, y{2, 2}, root{3, 0};
  victim_answer named;
  named.victims = {c, y, b, x, a};
  named.above = {b, x, a, root, {}}; // `root` was not named
  EXPECT_EQ(with_descendants(named, {2}), (std::vector<entry_key>{c, b}));
  EXPECT_EQ(with_descendants(named, {4}), (std::vector<entry_key>{c, b, a}));
  EXPECT_EQ(with_descendants(named, {1}), (std::vector<entry_key>{y}));
  EXPECT_EQ(with_descendants(named, {0, 3}), (std::vector<entry_key>{c, y, x}));
}
