#include "scripted_daemon.hpp"

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

namespace {

lookup_id named(uint8_t byte) {
  lookup_id id;
  id.bytes.fill(byte);
  return id;
}

void answer_await(peer& client, const request& asked, uint8_t lease) {
  client.answer(asked, [&](body_builder& body) {
    auto tiers = body.CreateVector(std::vector<uint8_t>(2, static_cast<uint8_t>(tier_kind::disk)));
    auto id = body.CreateVector(std::vector<uint8_t>(16, lease));
    return wire::CreateAwaitLookupAnswer(
        body, wire::CreateLookupAnswer(body, 3, 2, 512, 511, tiers, id, 1024), 256);
  });
}

} // namespace

TEST(NamedLookup, ALookupSendsItsIdAndOnlyThen) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    auto first = client.expect(kind::lookup);
    EXPECT_EQ(protocol::to_lookup_id(first.as<wire::Lookup>().lookup_id()), named(9));
    client.answer_lookup(first, 1);
    auto second = client.expect(kind::lookup);
    EXPECT_EQ(second.as<wire::Lookup>().lookup_id(), nullptr);
    client.answer_lookup(second, 1);
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto digests = some_digests(1);
  lookup_request asked{.in = *space, .what = prefix::of_digests(digests)};
  asked.id = named(9);
  ASSERT_FINE(connected.lookup(asked));
  asked.id.reset();
  ASSERT_FINE(connected.lookup(asked));
}

TEST(NamedLookup, AWaitGivesTheOthersAnswerAndAShareOfItsLease) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    auto asked = client.expect(kind::await_lookup);
    EXPECT_EQ(protocol::to_lookup_id(asked.as<wire::AwaitLookup>().lookup_id()), named(9));
    answer_await(client, asked, 3);
    auto released = client.expect(kind::release);
    EXPECT_EQ(protocol::to_lease_id(released.as<wire::Release>().lease()), lease_of(3));
    client.drain();
  });
  auto connected = daemon.connect();
  auto found = connected.await_lookup(named(9));
  ASSERT_FINE(found);
  EXPECT_EQ(found->requested_chunks, 3U);
  EXPECT_EQ(found->found_chunks, 2U);
  EXPECT_EQ(found->usable_tokens, 511U);
  EXPECT_EQ(found->first_token, 1024U);
  EXPECT_EQ(found->tiers, std::vector<tier_kind>(2, tier_kind::disk));
  EXPECT_EQ(found->held.id(), lease_of(3));
}

TEST(NamedLookup, AnAnswerThatNobodyTakesGivesItsLeaseBack) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    answer_await(client, client.expect(kind::await_lookup), 3);
    auto released = client.expect(kind::release);
    EXPECT_EQ(protocol::to_lease_id(released.as<wire::Release>().lease()), lease_of(3));
  });
  auto connected = daemon.connect();
  auto dropped = connected.async().await_lookup(named(9));
  ASSERT_FINE(dropped);
  ASSERT_EQ(connected.poll({}), 1U);
  EXPECT_TRUE(dropped->ready());
}

TEST(NamedLookup, IsCancelledByItsId) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    for (bool known : {true, false}) {
      auto asked = client.expect(kind::cancel);
      EXPECT_EQ(asked.as<wire::Cancel>().request(), 0U);
      EXPECT_EQ(protocol::to_lookup_id(asked.as<wire::Cancel>().lookup_id()), named(9));
      client.answer(asked, [&](body_builder& body) { return wire::CreateCancelAnswer(body, known); });
    }
  });
  auto connected = daemon.connect();
  EXPECT_TRUE(connected.cancel_lookup(named(9)).value());
  EXPECT_FALSE(connected.cancel_lookup(named(9)).value());
}
