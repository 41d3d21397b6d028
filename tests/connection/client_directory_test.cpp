#include "connection/client_directory.hpp"

#include "connection/client_state.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

struct ClientDirectory : ::testing::Test {
  using directory = client_directory<client_state>;
  directory clients;
  uint64_t next = 1;

  connection_id add(uid_t uid = 0, pid_t pid = 7, const char* group = "default") {
    auto made = std::make_shared<client_state>();
    made->group = group;
    made->id = connection_id{next++};
    made->uid = uid;
    made->pid = pid;
    clients.add(made);
    return made->id;
  }
};

} // namespace

TEST_F(ClientDirectory, CountsClientsFromHelloOn) {
  auto first = add(), second = add(), third = add();
  EXPECT_EQ(clients.count(standing::silent), 3u);
  EXPECT_TRUE(clients.admit_client(first, {2}));
  EXPECT_TRUE(clients.admit_client(second, {2}));
  auto refused = clients.admit_client(third, {2});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("connection.connections_max"), std::string::npos);
  clients.remove(first);
  EXPECT_TRUE(clients.admit_client(third, {2}));
}

TEST_F(ClientDirectory, AProcessLeavesPlacesForOthers) {
  const directory::client_bound bound{80};
  auto open = [&](uid_t uid, pid_t pid) {
    size_t opened = 0;
    while (opened < 100 && clients.admit_client(add(uid, pid), bound))
      ++opened;
    return opened;
  };
  EXPECT_EQ(open(0, 7), 60u) << "three quarters";
  auto refused = clients.admit_client(add(0, 7), bound);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("process 7 has 60 connections"), std::string::npos);
  EXPECT_EQ(open(0, 8), 16u) << "what any may have";
  EXPECT_EQ(open(0, 9), 4u) << "all are taken";
}

TEST_F(ClientDirectory, ProcessesThatAreNotVisibleAreCountedByTheirUsers) {
  const directory::client_bound bound{80};
  for (int i = 0; i < 60; ++i)
    ASSERT_TRUE(clients.admit_client(add(1, 0), bound));
  EXPECT_FALSE(clients.admit_client(add(1, 0), bound));
  EXPECT_TRUE(clients.admit_client(add(2, 0), bound));
}

TEST_F(ClientDirectory, TheOldestSilentConnectionOfTheUserWithMostOfThemLeaves) {
  auto alone = add(1000);
  auto first = add(2000);
  add(2000);
  EXPECT_EQ(clients.make_room_for_silent(4), nullptr);
  auto leaves = clients.make_room_for_silent(3);
  ASSERT_NE(leaves, nullptr);
  EXPECT_EQ(leaves->id, first);
  EXPECT_FALSE(clients.admit_client(first, {9})) << "too late";
  EXPECT_EQ(clients.count(standing::leaving), 1u);
  EXPECT_EQ(clients.make_room_for_silent(3), nullptr);
  EXPECT_TRUE(clients.admit_client(alone, {9}));
}

TEST_F(ClientDirectory, ObserversAreNotClientsAndTheOldestLeaves) {
  auto first = add();
  EXPECT_EQ(clients.admit_observer(first), nullptr);
  for (size_t i = 1; i < directory::observers_max; ++i)
    EXPECT_EQ(clients.admit_observer(add()), nullptr);
  auto leaves = clients.admit_observer(add());
  ASSERT_NE(leaves, nullptr);
  EXPECT_EQ(leaves->id, first);
  EXPECT_EQ(clients.count(standing::observer), directory::observers_max);
  EXPECT_TRUE(clients.admit_client(add(), {1}));
}

TEST_F(ClientDirectory, AProcessWithQuarantinedConnectionsMustConfirmOnceThereAreMany) {
  for (int i = 0; i < 2; ++i) {
    auto closed = add(0, 7);
    EXPECT_TRUE(clients.admit_client(closed, {2}));
    clients.quarantine(closed);
  }
  EXPECT_EQ(clients.count(standing::quarantined), 2u);
  EXPECT_TRUE(clients.admit_client(add(0, 8), {2}));
  auto refused = clients.admit_client(add(0, 7), {2});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("resumes"), std::string::npos) << refused.error().text;
  clients.confirm(connection_id{1}, 8);
  EXPECT_EQ(clients.count(standing::quarantined), 2u) << "another process cannot confirm";
  clients.confirm(connection_id{1}, 7);
  EXPECT_EQ(clients.count(standing::quarantined), 1u);
  EXPECT_TRUE(clients.find(connection_id{1})) << "it leaves by itself";
  EXPECT_TRUE(clients.admit_client(add(0, 7), {2}));
}

TEST_F(ClientDirectory, EachTrustGroupHasAShareOfHalfThePlaces) {
  directory::client_bound bound{8, 2};
  ASSERT_EQ(bound.share(), 2u);
  auto of = [&](const char* group) { return add(0, 7, group); };
  connection_id last{};
  for (int i = 0; i < 6; ++i) {
    last = of("greedy");
    EXPECT_TRUE(clients.admit_client(last, bound)) << i;
  }
  auto refused = clients.admit_client(of("greedy"), bound);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("keeps 2 for other trust groups"), std::string::npos)
      << refused.error().text;
  EXPECT_TRUE(clients.admit_client(of("other"), bound));
  EXPECT_FALSE(clients.admit_client(of("greedy"), bound));
  EXPECT_TRUE(clients.admit_client(of("other"), bound));
  EXPECT_FALSE(clients.admit_client(of("other"), bound)) << "all places are taken";
  clients.remove(last);
  EXPECT_TRUE(clients.admit_client(of("other"), bound)) << "beyond its share, first come first served";
}

TEST_F(ClientDirectory, OneTrustGroupAloneHasAllPlaces) {
  directory::client_bound bound{3, 1};
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(clients.admit_client(add(), bound));
  EXPECT_FALSE(clients.admit_client(add(), bound));
}

TEST_F(ClientDirectory, AdmitsWhoeverSaysHelloAsAClientOrAnObserver) {
  auto client = add(), observer = add(), third = add();
  auto admitted = clients.admit(client, false, {1});
  ASSERT_TRUE(admitted);
  EXPECT_EQ(*admitted, nullptr) << "nobody must leave";
  EXPECT_EQ(clients.count(standing::client), 1u);
  EXPECT_TRUE(clients.admit(observer, true, {1}));
  EXPECT_EQ(clients.count(standing::observer), 1u);
  EXPECT_EQ(clients.admit(third, false, {1}).error().code, errc::busy);
}

TEST_F(ClientDirectory, DrainsUntilTheLastClientHasLeft) {
  auto first = add(), second = add(), late = add(), looker = add();
  ASSERT_TRUE(clients.admit_client(first, {10}));
  ASSERT_TRUE(clients.admit_client(second, {10}));
  int left = 0;
  EXPECT_EQ(clients.drain([&] { ++left; }), 2u);
  auto refused = clients.admit_client(late, {10});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("drains"), std::string::npos);
  EXPECT_EQ(clients.admit_observer(looker), nullptr) << "whoever only looks is admitted";
  clients.remove(first);
  EXPECT_EQ(left, 0);
  EXPECT_EQ(clients.drain([&] { left += 10; }), 1u) << "it drains already";
  clients.quarantine(second); // its socket is closed
  EXPECT_EQ(left, 1);
  clients.remove(second);
  EXPECT_EQ(left, 1) << "told once";
}

TEST_F(ClientDirectory, DrainsAtOnceWithoutClients) {
  bool left = false;
  EXPECT_EQ(clients.drain([&] { left = true; }), 0u);
  EXPECT_TRUE(left);
}
