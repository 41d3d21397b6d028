// Requests of a tenant at its bound wait for its own objects, and nobody else's requests do.
#include "tier/quota/quota_line.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <random>

using namespace terrace;
using namespace terrace::test;

namespace {

struct QuotaLine : ::testing::Test {
  std::shared_ptr<tenant_directory> directory = std::make_shared<tenant_directory>();
  std::unique_ptr<tenant_quotas> quotas;
  std::unique_ptr<quota_line> line;
  using outcome = std::shared_ptr<std::optional<errc>>;

  QuotaLine() {
    tenant_quota rule{"all", "", true, {}};
    rule.in(tier_kind::host).max = quota_part{10, false};
    directory->set_quotas({rule});
    for (uint32_t space = 1; space <= 4; ++space)
      directory->opened(space_id{space}, "salt" + std::to_string(space));
    quotas = std::make_unique<tenant_quotas>(tier_kind::host, directory, [] { return uint64_t{100}; });
    line = std::make_unique<quota_line>(*quotas, 8);
  }

  tenant_id tenant(uint32_t space) { return quotas->tenant_of(space_id{space}); }
  /// Granted bytes are charged at once, as by an allocator with room.
  outcome ask(uint32_t space, uint64_t bytes, bool may_wait = true, context_ptr of = nullptr) {
    auto told = std::make_shared<std::optional<errc>>();
    line->ask({tenant(space), bytes, may_wait, std::move(of)}, [this, told, space, bytes](const error& why) {
      EXPECT_FALSE(told->has_value()) << "answered twice";
      *told = why.code;
      if (why.code != errc::ok)
        return;
      quotas->unbook(tenant(space), bytes);
      quotas->took(space_id{space}, bytes);
      EXPECT_LE(quotas->used_by(tenant(space)), 10U);
    });
    return told;
  }
  static residency::holders held(bool only_leases = false) {
    return {"leases hold it", 1, only_leases ? 0U : 1U};
  }
};

} // namespace

TEST_F(QuotaLine, ARequestBelowTheBoundIsServedAtOnce) {
  EXPECT_EQ(*ask(1, 10), errc::ok);
  EXPECT_EQ(*ask(2, 10), errc::ok) << "each tenant has its own bound";
  EXPECT_FALSE(line->begin_round());
  EXPECT_TRUE(line->idle());
}

TEST_F(QuotaLine, OneThatCanNeverFitIsRefusedAndNotQueued) {
  std::string text;
  line->ask({tenant(1), 11, true, nullptr}, [&](const error& why) {
    EXPECT_EQ(why.code, errc::no_space);
    text = why.text;
  });
  EXPECT_NE(text.find("quota all allows 10 bytes in the tier host, and the request needs 11"),
            std::string::npos)
      << text;
  EXPECT_EQ(line->waiting(), 0U);
}

TEST_F(QuotaLine, WaitsForARoundOfItsTenantWhileOthersPass) {
  ask(1, 10);
  auto waiting = ask(1, 4);
  EXPECT_FALSE(*waiting);
  EXPECT_EQ(*ask(2, 4), errc::ok);
  auto round = line->begin_round();
  ASSERT_TRUE(round);
  EXPECT_EQ(round->tenant, tenant(1));
  EXPECT_EQ(round->missing_bytes, 4U);
  EXPECT_FALSE(line->begin_round()) << "one at a time";
  quotas->gave_back(space_id{1}, 5);
  line->end_round({});
  EXPECT_EQ(*waiting, errc::ok);
  EXPECT_TRUE(line->idle());
}

TEST_F(QuotaLine, AFailedRoundIsRepeatedWhenSomethingChanges) {
  ask(1, 10);
  auto waiting = ask(1, 4);
  ASSERT_TRUE(line->begin_round());
  line->end_round(held());
  EXPECT_FALSE(*waiting);
  EXPECT_FALSE(line->begin_round()) << "it would fail again";
  line->changed();
  EXPECT_TRUE(line->begin_round());
  line->end_round(held(true));
  EXPECT_EQ(*waiting, errc::no_space) << "only the end of leases could make room";
}

TEST_F(QuotaLine, WhoMayNotWaitIsRefusedAfterARound) {
  ask(1, 10);
  auto impatient = ask(1, 1, false);
  EXPECT_FALSE(*impatient);
  ASSERT_TRUE(line->begin_round());
  line->end_round(held());
  EXPECT_EQ(*impatient, errc::no_space);
}

TEST_F(QuotaLine, WhoMayNotWaitIsNotKeptBehindOneForWhomThereIsNoRoom) {
  ask(1, 10);
  auto patient = ask(1, 1);
  auto impatient = ask(1, 2, false);
  auto last = ask(1, 3);
  ASSERT_TRUE(line->begin_round());
  line->end_round(held());
  EXPECT_FALSE(*patient);
  EXPECT_EQ(*impatient, errc::no_space);
  EXPECT_FALSE(*last);
  EXPECT_EQ(line->waiting(), 2U);
}

TEST_F(QuotaLine, IsBoundedAndAheadOfDemandGoesLast) {
  ask(1, 10);
  for (int i = 0; i < 8; ++i)
    EXPECT_FALSE(*ask(1, 1));
  EXPECT_EQ(*ask(1, 1), errc::busy);
  EXPECT_EQ(line->waiting(), 8U);
  EXPECT_EQ(*ask(2, 1), errc::busy) << "the line as a whole is full";
  line = std::make_unique<quota_line>(*quotas, 8);
  auto ahead = context();
  ahead->ahead = true;
  EXPECT_FALSE(*ask(1, 1));
  EXPECT_EQ(*ask(1, 1, true, ahead), errc::busy);
}

TEST_F(QuotaLine, ARequestThatHasEndedIsAnsweredAtTheSweep) {
  ask(1, 10);
  auto first = context(), second = context();
  auto a = ask(1, 1, true, first), b = ask(1, 2, true, second);
  second->ended = errc::cancelled;
  line->sweep();
  EXPECT_FALSE(*a);
  EXPECT_EQ(*b, errc::cancelled);
  ASSERT_TRUE(line->begin_round());
  line->end_round(held());
  first->ended = errc::deadline;
  line->sweep();
  EXPECT_EQ(*a, errc::no_space) << "it waited for memory that was not released";
}

TEST_F(QuotaLine, TenantsTakeTurns) {
  std::vector<tenant_id> order;
  for (uint32_t space = 1; space <= 3; ++space) {
    ask(space, 10);
    ask(space, 1);
  }
  for (int i = 0; i < 6; ++i) {
    auto round = line->begin_round();
    ASSERT_TRUE(round);
    order.push_back(round->tenant);
    line->end_round(held());
    line->changed();
  }
  for (size_t i = 3; i < 6; ++i)
    EXPECT_EQ(order[i], order[i - 3]);
  EXPECT_EQ(std::set<tenant_id>(order.begin(), order.end()).size(), 3U);
}

TEST_F(QuotaLine, ALoweredBoundMakesRoundsUntilItHolds) {
  ask(1, 8);
  ASSERT_TRUE(directory->change("all", tier_kind::host, {quota_part{5, false}, {}, false}, {0, 100, 0, 0}));
  quotas->refresh();
  line->changed();
  auto round = line->begin_round();
  ASSERT_TRUE(round);
  EXPECT_EQ(round->missing_bytes, 1U);
  EXPECT_EQ(round->wanted_bytes, 3U);
  quotas->gave_back(space_id{1}, 2);
  line->end_round({});
  round = line->begin_round();
  ASSERT_TRUE(round);
  EXPECT_EQ(round->wanted_bytes, 1U);
  quotas->gave_back(space_id{1}, 1);
  line->end_round({});
  EXPECT_FALSE(line->begin_round());
  EXPECT_TRUE(line->idle());
}

/// Requests, rounds, frees and ends at random: nobody exceeds its bound, and everybody is answered once.
TEST_F(QuotaLine, HoldsUnderRandomRequests) {
  auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  auto any = [&](uint32_t n) { return std::uniform_int_distribution<uint32_t>(0, n - 1)(random); };
  std::vector<std::pair<outcome, context_ptr>> asked;
  std::optional<quota_line::round> round;
  for (int step = 0; step < 5000; ++step) {
    uint32_t space = 1 + any(4);
    switch (any(4)) {
      case 0: {
        auto of = context();
        asked.emplace_back(ask(space, 1 + any(10), any(4) != 0, of), of);
        break;
      }
      case 1:
        if (!round) {
          round = line->begin_round();
          break;
        }
        for (uint32_t s = 1; s <= 4; ++s)
          if (tenant(s) == round->tenant && any(3) != 0) {
            uint64_t has = quotas->used_by(tenant(s));
            if (has >= round->missing_bytes)
              quotas->gave_back(space_id{s}, round->missing_bytes);
          }
        line->end_round(any(2) == 0 ? std::optional(held()) : std::nullopt);
        round.reset();
        break;
      case 2: line->changed(); break;
      default:
        if (!asked.empty() && any(3) == 0) {
          asked[any(static_cast<uint32_t>(asked.size()))].second->ended = errc::cancelled;
          line->sweep();
        }
    }
    for (uint32_t s = 1; s <= 4; ++s)
      ASSERT_LE(quotas->used_by(tenant(s)), 10U) << "step " << step;
  }
  for (auto& [told, of] : asked)
    of->ended = errc::cancelled;
  line->sweep();
  for (auto& [told, of] : asked)
    EXPECT_TRUE(told->has_value());
  EXPECT_EQ(line->waiting(), 0U);
}
