// What a connection holds for its client: leases, and the places it told.
#include "connection_fixture.hpp"

#include <algorithm>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;

namespace {

struct ConnectionLeases : connection_fixture {
  using lease = std::vector<uint8_t>;

  received look_up(uint64_t id, size_t count) {
    send_lookup(id, 0, count, true);
    return answer();
  }
  lease take(uint64_t id, size_t count) {
    auto found = look_up(id, count);
    EXPECT_EQ(found.code(), errc::ok) << found.text();
    const auto* name = found.code() == errc::ok ? found.as<wire::LookupAnswer>().lease() : nullptr;
    return name == nullptr ? lease() : lease(name->begin(), name->end());
  }
  received read(uint64_t id, const lease& from, uint32_t first, uint32_t count) {
    send(kind::read_lease, id, [&](auto& body) {
      auto named = body.CreateVector(from);
      return wire::CreateReadLease(body, named, first, count);
    });
    return answer();
  }
  received release(uint64_t id, const lease& which) {
    send(kind::release, id, [&](auto& body) {
      auto named = body.CreateVector(which);
      return wire::CreateRelease(body, named);
    });
    return answer();
  }
};

} // namespace

TEST_F(ConnectionLeases, LeasesEndWithTheirConnection) {
  ready();
  store(0, 4);
  send_lookup(20, 0, 4, true);
  auto found = answer();
  ASSERT_EQ(found.code(), errc::ok) << found.text();
  EXPECT_EQ(found.as<wire::LookupAnswer>().found_chunks(), 4u);
  EXPECT_EQ(held(), 4u);
  client->close();
  settle();
  EXPECT_EQ(held(), 0u);
}

TEST_F(ConnectionLeases, WhatALivingProcessMayBeReadingStaysUntilItEnds) {
  ready();
  store(0, 4);
  send_lookup(20, 0, 4, true);
  auto found = answer();
  const auto* id = found.as<wire::LookupAnswer>().lease();
  ASSERT_NE(id, nullptr);
  std::vector<uint8_t> lease_name(id->begin(), id->end());
  send(kind::read_lease, 21, [&](auto& body) {
    auto named = body.CreateVector(lease_name);
    return wire::CreateReadLease(body, named, 0, 2);
  });
  auto places = answer();
  ASSERT_EQ(places.code(), errc::ok) << places.text();
  EXPECT_EQ(places.as<wire::ReadLeaseAnswer>().locations()->size(), 2u);
  client->close();
  settle();
  EXPECT_GE(held(), 2u);
  EXPECT_EQ(environment->clients->size(), 1u);
  process_ends();
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(ConnectionLeases, AnOldLeaseIsReportedOnce) {
  ready();
  store(0, 1);
  send_lookup(20, 0, 1, true);
  answer();
  pass(environment->limits.lease_warn_after);
  auto warnings = [&] {
    return std::count_if(log.begin(), log.end(), [](const std::string& line) {
      return line.find("twice connection.request_deadline") != std::string::npos;
    });
  };
  EXPECT_EQ(warnings(), 1);
  pass(environment->limits.lease_warn_after);
  EXPECT_EQ(warnings(), 1);
}

TEST_F(ConnectionLeases, ManyOldLeasesDoNotFloodTheLog) {
  ready();
  store(0, 1);
  for (uint64_t id = 20; id < 60; ++id) {
    send_lookup(id, 0, 1, true);
    answer();
  }
  pass(environment->limits.lease_warn_after);
  auto lines = std::count_if(log.begin(), log.end(), [](const std::string& line) {
    return line.find("twice connection.request_deadline") != std::string::npos;
  });
  EXPECT_EQ(lines, 10);
}

TEST_F(ConnectionLeases, ALeaseThatIsHeldForHoursStillLoads) {
  ready();
  store(0, 4);
  auto taken = take(20, 4);
  pass(5h);
  auto places = read(21, taken, 0, 4);
  ASSERT_EQ(places.code(), errc::ok) << places.text();
  EXPECT_EQ(places.as<wire::ReadLeaseAnswer>().locations()->size(), 4u);
  send(kind::leases, 22, [](auto& body) { return wire::CreateLeases(body); });
  auto listed = answer();
  ASSERT_EQ(listed.code(), errc::ok) << listed.text();
  ASSERT_EQ(listed.as<wire::LeasesAnswer>().leases()->size(), 1u);
  EXPECT_GE(listed.as<wire::LeasesAnswer>().leases()->Get(0)->age_ms(), 5u * 3'600'000);
}

TEST_F(ConnectionLeases, ARevokedLeaseIsGoneAndWhatIsReadStaysUntilItIsReleased) {
  ready();
  store(0, 4);
  auto taken = take(20, 4);
  EXPECT_EQ(read(21, taken, 0, 1).code(), errc::ok);
  auto revoke = [&](uint64_t id) {
    send(kind::revoke, id, [&](auto& body) { return wire::CreateRevoke(body, body.CreateVector(taken)); });
    return answer();
  };
  auto revoked = revoke(22);
  ASSERT_EQ(revoked.code(), errc::ok) << revoked.text();
  EXPECT_EQ(revoked.as<wire::RevokeAnswer>().holders(), 1u);
  EXPECT_NE(revoked.as<wire::RevokeAnswer>().quarantined_bytes(), 0u);
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(read(23, taken, 1, 1).code(), errc::gone);
  EXPECT_EQ(revoke(24).code(), errc::not_found);
  EXPECT_EQ(release(25, taken).code(), errc::ok) << "it has finished reading";
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(release(26, taken).code(), errc::gone);
}

TEST_F(ConnectionLeases, NameNoMoreObjectsThanTheyMay) {
  environment->limits.lease_objects_max = 6;
  ready();
  store(0, 4);
  auto first = take(20, 4);
  auto refused = look_up(21, 4);
  EXPECT_EQ(refused.code(), errc::busy);
  EXPECT_NE(refused.text().find("connection.group_bytes"), std::string::npos) << refused.text();
  EXPECT_EQ(held(), 4u) << "what was found for the refused lease is let go";
  EXPECT_EQ(look_up(22, 2).code(), errc::ok) << "a smaller one fits";
  EXPECT_EQ(release(23, first).code(), errc::ok);
  EXPECT_EQ(look_up(24, 4).code(), errc::ok);
}

TEST_F(ConnectionLeases, PlacesThatAreToldDoNotCountAgain) {
  environment->limits.lease_objects_max = 4;
  ready();
  store(0, 4);
  auto taken = take(20, 4);
  EXPECT_EQ(read(21, taken, 0, 2).code(), errc::ok);
  EXPECT_EQ(read(22, taken, 0, 4).code(), errc::ok);
  EXPECT_EQ(look_up(23, 1).code(), errc::busy);
  EXPECT_EQ(release(24, taken).code(), errc::ok);
  auto again = take(25, 4);
  EXPECT_EQ(read(26, again, 0, 4).code(), errc::ok);
}
