// The check names leases and sessions of a group that contradict each other.
#include "group/group_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace terrace {

/// Damages what a registry keeps, as a bug in it would.
struct damaged_leases {
  static void forgets_the_number(lease_registry& leases, const lease_id& id) { leases.numbers_.erase(id); }
};

/// Adds references that nobody is known to have.
struct damaged_groups {
  static tail_reference refers_to_a_tail(group_state& group, const space_ptr& in, tail_referrer by) {
    return group.tails_.refer(in, digest{{5}}, by);
  }
};

} // namespace terrace

using namespace terrace;

namespace group_check_test {

constexpr connection_id owner{4};

lease_ptr lease_numbered(uint8_t number, connection_id of = owner) {
  auto made = std::make_shared<lease>();
  made->id = lease_id{{number}};
  made->owner = of;
  made->taken_for = of == connection_id{} ? reference_kind::pin : reference_kind::lease;
  made->space = std::make_shared<opened_space>();
  return made;
}

struct GroupCheck : ::testing::Test {
  std::shared_ptr<credit_gate> notices = std::make_shared<credit_gate>();
  group_state group{{.spaces_max = 2}, notices};

  void add(const lease_ptr& what) {
    notices->offer(1);
    group.apply(add_lease_notice{what->id, what->owner, what});
  }
  std::vector<std::string> check() { return check_leases(group, check_group_request{}).differences; }
};

TEST_F(GroupCheck, ListsLeasesWithWhoKeepsThem) {
  auto first = lease_numbered(1), pinned = lease_numbered(2, {});
  add(first);
  ASSERT_EQ(group.answer(pin_request{pinned, digest{{9}}, 1 << 20}).failure.code, errc::ok);
  auto found = check_leases(group, check_group_request{});
  EXPECT_TRUE(found.differences.empty());
  ASSERT_EQ(found.leases.size(), 2u);
  EXPECT_EQ(found.leases[0], first);
  EXPECT_EQ(found.leases[1], pinned);
  EXPECT_EQ(found.next, 0u);
}

TEST_F(GroupCheck, NamesALeaseThatIsChargedToOthers) {
  auto pinned = std::make_shared<lease>(*lease_numbered(1, {}));
  pinned->taken_for = reference_kind::session;
  ASSERT_EQ(group.answer(pin_request{pinned, digest{{9}}, 1 << 20}).failure.code, errc::ok);
  EXPECT_EQ(check(),
            std::vector<std::string>{"lease 01000000000000000000000000000000 is kept for pins and was "
                                     "taken for sessions"});
}

TEST_F(GroupCheck, ListsThemInParts) {
  std::vector<lease_ptr> all;
  for (uint8_t number = 1; number <= check_group_request::leases_max + 1; ++number) {
    all.push_back(lease_numbered(number));
    add(all.back());
  }
  auto first = check_leases(group, check_group_request{});
  EXPECT_EQ(first.leases.size(), check_group_request::leases_max);
  ASSERT_NE(first.next, 0u);
  auto rest = check_leases(group, check_group_request{first.next});
  EXPECT_EQ(rest.leases.size(), 1u);
  EXPECT_EQ(rest.next, 0u);
}

TEST_F(GroupCheck, ALeaseWhoseEndIsOnItsWayIsNoDifference) {
  add(lease_numbered(1));
  auto found = check_leases(group, check_group_request{});
  EXPECT_TRUE(found.differences.empty());
  EXPECT_TRUE(found.leases.empty());
}

TEST_F(GroupCheck, NamesALeaseOfNobody) {
  add(lease_numbered(1, {}));
  auto found = check();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(
      found[0],
      "0 pins and 0 held sessions have leases, and the trust group knows 1 that belong to no connection");
  EXPECT_EQ(found[1],
            "lease 01000000000000000000000000000000 belongs to no connection, and neither to a pin nor to a "
            "held session");
  EXPECT_EQ(found[2], "lease 01000000000000000000000000000000 is known, and nobody keeps it");
}

TEST_F(GroupCheck, NamesLeasesThatAConnectionAndTheGroupKnowDifferently) {
  auto first = lease_numbered(1);
  add(first);
  check_owner_request asked{owner, {first->id}};
  EXPECT_TRUE(check_owner(group, asked).differences.empty());
  asked.leases.push_back(lease_id{{2}});
  auto found = check_owner(group, asked).differences;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0],
            "connection 4 owns lease 02000000000000000000000000000000, and the trust group does not know it");
  EXPECT_EQ(found[1], "connection 4 owns 2 leases, and the trust group knows 1 of it");
  auto none = check_owner(group, check_owner_request{owner, {}}).differences;
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0], "connection 4 owns 0 leases, and the trust group knows 1 of it");
}

TEST_F(GroupCheck, NamesARegistryWhosePartsDiffer) {
  lease_registry leases;
  auto first = lease_numbered(1);
  leases.add(first->id, owner, first);
  EXPECT_TRUE(leases.check().empty());
  damaged_leases::forgets_the_number(leases, first->id);
  auto found = leases.check();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "the trust group has 1 leases, 0 by id and 1 by owner");
}

TEST_F(GroupCheck, CountsReferencesOfPromptsAndTails) {
  auto in = std::make_shared<opened_space>();
  auto kept = std::make_shared<prompt_entry>();
  kept->end = {.space = in, .chunks = 3, .tail_tokens = 7, .key = digest{{1}}};
  kept->logits.resize(100);
  ASSERT_EQ(group.answer(save_prompt_request{kept}).failure.code, errc::ok);
  auto found = check_leases(group, check_group_request{});
  EXPECT_TRUE(found.differences.empty());
  EXPECT_EQ(found.named.prompts, 3u);
  EXPECT_EQ(found.named.tails_of_prompts, 1u);
  EXPECT_EQ(found.named.tails_of_sessions, 0u);
}

TEST_F(GroupCheck, NamesReferencesToTailsThatNobodyHas) {
  auto in = std::make_shared<opened_space>();
  {
    auto extra = damaged_groups::refers_to_a_tail(group, in, tail_referrer::prompt);
    EXPECT_EQ(check(), std::vector<std::string>{
                           "0 prompt entries have a tail, and there are 1 references of prompts to tails"});
  }
  EXPECT_TRUE(check().empty());
  auto extra = damaged_groups::refers_to_a_tail(group, in, tail_referrer::session);
  EXPECT_EQ(group.answer(check_sessions_request{true}).differences,
            std::vector<std::string>{
                "0 sessions refer to a tail, and there are 1 references of sessions to tails"});
}

TEST_F(GroupCheck, CountsSessionsInSteps) {
  for (uint8_t number = 1; number <= 3; ++number) {
    open_session_request open;
    open.opening.id.bytes[0] = number;
    open.opening.owner = owner;
    open.opening.chunk_tokens = 16;
    group.answer(open);
  }
  auto found = group.answer(check_sessions_request{true});
  EXPECT_FALSE(found.more);
  EXPECT_FALSE(found.interrupted);
  EXPECT_EQ(found.sessions, 3u);
  EXPECT_TRUE(found.differences.empty());
  EXPECT_TRUE(group.answer(check_sessions_request{false}).interrupted) << "there is none in progress";
}

} // namespace group_check_test
