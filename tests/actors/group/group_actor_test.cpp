#include "actors/group/group_actor.hpp"

#include "group_fixture.hpp"

#include <cstring>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct GroupActor : group_fixture {
  GroupActor() { start({.host_objects = 8}); }

  lease_ptr take(uint8_t number, uint64_t owner, hold_ptr held = nullptr) {
    auto taken = std::make_shared<lease>();
    taken->id.bytes[0] = number;
    taken->owner = connection_id{owner};
    taken->held.push_back({tier_kind::host, std::move(held)});
    (void) group->lease_notices->offer(1);
    caf::anon_send(group->group, add_lease_notice{taken->id, taken->owner, taken});
    settle();
    return taken;
  }
  use_lease_answer use(const lease_id& id) {
    auto answer = ask<use_lease_answer>(group->group, use_lease_request{id});
    settle();
    return **answer;
  }
};

} // namespace

TEST_F(GroupActor, ALeaseIsFoundByItsIdFromAnyConnection) {
  auto taken = take(1, 10);
  EXPECT_EQ(use(taken->id).found, taken);
  lease_id unknown;
  unknown.bytes[0] = 9;
  EXPECT_EQ(use(unknown).failure.code, errc::gone);
}

TEST_F(GroupActor, OnlyItsOwnerEndsALease) {
  auto taken = take(1, 10);
  (void) group->lease_notices->offer(1);
  caf::anon_send(group->group, end_lease_notice{taken->id, connection_id{11}});
  settle();
  EXPECT_EQ(use(taken->id).failure.code, errc::ok);
  (void) group->lease_notices->offer(1);
  caf::anon_send(group->group, end_lease_notice{taken->id, connection_id{10}});
  settle();
  EXPECT_EQ(use(taken->id).failure.code, errc::gone);
}

TEST_F(GroupActor, LeasesEndWithTheirOwnerAndOthersStay) {
  auto first = take(1, 10);
  auto second = take(2, 10);
  auto other = take(3, 11);
  caf::anon_send(group->group, end_owner_notice{connection_id{10}});
  settle();
  EXPECT_EQ(use(first->id).failure.code, errc::gone);
  EXPECT_EQ(use(second->id).failure.code, errc::gone);
  EXPECT_EQ(use(other->id).failure.code, errc::ok);
}

TEST_F(GroupActor, WhatALeaseHeldIsHeldUntilTheLastUserLetsGo) {
  store(0, 2);
  auto taken = take(1, 10, hold(group->host, 0, 2));
  auto used = use(taken->id).found;
  caf::anon_send(group->group, end_owner_notice{connection_id{10}});
  taken.reset();
  settle();
  EXPECT_EQ(report(group->host).held_objects, 2u); // a load under the lease goes on
  used.reset();
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(GroupActor, ItsNameAloneKeepsNothing) {
  store(0, 2);
  auto taken = take(1, 10, hold(group->host, 0, 2));
  lease_id id = taken->id;
  taken.reset();
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(use(id).failure.code, errc::gone);
}

TEST_F(GroupActor, TheSameSpecIsTheSameSpaceForAll) {
  auto open = [&](const space_spec& spec) {
    auto answer = ask<open_space_answer>(group->group, open_space_request{spec});
    settle();
    return **answer;
  };
  auto spec = terrace::test::small_space();
  auto first = open(spec);
  ASSERT_EQ(first.failure.code, errc::ok) << first.failure.text;
  EXPECT_EQ(open(spec).opened, first.opened);
  spec.dtype = "float16";
  EXPECT_NE(open(spec).opened->id, first.opened->id);
  spec.chunk_tokens = 63;
  EXPECT_EQ(open(spec).failure.code, errc::bad_request);
}

TEST_F(GroupActor, AnIsolatedGroupRefusesDigestsThatCanBeForged) {
  auto isolated = spawn_group(sys, {.isolated = true});
  auto spec = terrace::test::small_space();
  spec.algorithm = hash_algorithm::xxh3_128;
  auto answer = ask<open_space_answer>(isolated, open_space_request{spec});
  settle();
  EXPECT_EQ((*answer)->failure.code, errc::denied);
  stop(isolated);
}

// ---- spaces that are forgotten ----

struct GroupActorWithDisk : group_fixture {
  GroupActorWithDisk() { start({.host_objects = 8, .disk_objects = 8}); }

  /// The fixture's space is opened, something is stored in it, and it is closed. A space with objects is not forgotten;
  /// here they show, after a restart, whether the disk was told.
  idle_space closed() {
    auto opened = ask<open_space_answer>(group->group, open_space_request{in->spec});
    settle();
    in = (*opened)->opened;
    EXPECT_EQ(store(0, 2).stored_chunks, 2u);
    EXPECT_EQ(present(disk_tier(), 0, 2), 2u);
    in.reset();
    opened->reset();
    auto idle = ask<idle_spaces_answer>(group->group, idle_spaces_request{});
    settle();
    EXPECT_EQ((*idle)->idle.size(), 1u);
    return (*idle)->idle.at(0);
  }
};

TEST_F(GroupActorWithDisk, TheDiskKeepsASpaceUntilItIsForgotten) {
  closed();
  restart();
  EXPECT_EQ(recovered_spaces, 1u);
}

TEST_F(GroupActorWithDisk, TheDiskForgetsASpaceAlthoughTheConnectionThatAskedHasEnded) {
  forget_spaces_request request{{closed()}};
  caf::anon_send(group->group, request); // nobody gets the answer
  settle();
  restart();
  EXPECT_EQ(recovered_spaces, 0u);
}

TEST_F(GroupActorWithDisk, AsManySpacesAsAPartHasAreForgottenAtOnce) {
  constexpr size_t most = empty_spaces_request::spaces_max;
  reserve_spaces_request spaces; // known, and nobody has them open
  for (uint32_t n = 0; n < most + 10; ++n) {
    digest fingerprint;
    std::memcpy(fingerprint.bytes.data(), &n, sizeof n);
    spaces.fingerprints.push_back(fingerprint);
  }
  ask<reserve_spaces_answer>(group->group, spaces);
  settle();
  for (size_t left : {most, size_t{10}}) {
    auto idle = ask<idle_spaces_answer>(group->group, idle_spaces_request{});
    settle();
    auto named = (*idle)->idle;
    EXPECT_LE(named.size(), most);
    EXPECT_GE(named.size(), left);
    auto forgotten = ask<forget_spaces_answer>(group->group, forget_spaces_request{named});
    settle();
    EXPECT_EQ((*forgotten)->forgotten.size(), named.size());
  }
  auto idle = ask<idle_spaces_answer>(group->group, idle_spaces_request{});
  settle();
  EXPECT_TRUE((*idle)->idle.empty());
}
