#include "scripted_daemon.hpp"

#include <fcntl.h>
#include <sys/mman.h>

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

TEST(Connection, ShakesHandsAndTellsWhatTheDaemonIs) {
  scripted_daemon daemon([](peer& client) {
    auto hello = client.welcome({.boot = 9, .connection = 41});
    EXPECT_EQ(hello.as<wire::Hello>().version(), protocol::version);
    EXPECT_EQ(hello.as<wire::Hello>().client_name()->str(), "my-engine");
    EXPECT_EQ(hello.as<wire::Hello>().resumes(), nullptr);
  });
  auto connected = daemon.connect("my-engine");
  const auto& info = connected.daemon();
  EXPECT_EQ(info.boot.bytes[15], 9);
  EXPECT_EQ(info.connection, connection_id{41});
  EXPECT_EQ(info.group, "main");
  EXPECT_TRUE(info.has("staging"));
  EXPECT_FALSE(info.has("teleport"));
  EXPECT_EQ(info.credit_requests, 64U);
  EXPECT_TRUE(connected.alive());
}

TEST(Connection, RefusesADaemonOfAnotherVersion) {
  scripted_daemon daemon([](peer& client) { client.welcome({.version = 99}); });
  EXPECT_FAILS(connection::over(daemon.socket(), {}), errc::unsupported, "got one of version 99");
}

TEST(Connection, AnErrorInTheHandshakeIsItsOutcome) {
  scripted_daemon daemon([](peer& client) {
    auto hello = client.receive();
    client.refuse(hello.id, errc::denied, "uid 1000 is not in the list");
  });
  EXPECT_FAILS(connection::over(daemon.socket(), {}), errc::denied, "uid 1000 is not in the list");
}

TEST(Connection, WithoutADaemonItIsGone) {
  EXPECT_FAILS(connection::connect({.path = "/nonexistent/terrace.sock"}), errc::gone,
               "is terraced running?");
  EXPECT_FAILS(connection::connect({.path = ""}), errc::bad_request, "path of a socket");
  EXPECT_FAILS(connection::connect({.path = std::string(200, 'x')}), errc::bad_request, "path of a socket");
}

TEST(Connection, ConnectsByPath) {
  scripted_daemon daemon(std::vector<script>{[](peer& client) { client.welcome(); }});
  ASSERT_FINE(connection::connect({.path = daemon.path()}, within(std::chrono::minutes(1))));
}

TEST(Lookup, SendsItsFieldsAndReadsTheAnswer) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    auto asked = client.expect(kind::lookup);
    const auto& table = asked.as<wire::Lookup>();
    EXPECT_EQ(table.space(), 5U);
    EXPECT_EQ(protocol::digest_count(*table.prefix()), 128U);
    EXPECT_EQ(protocol::digest_at(*table.prefix(), 2), some_digests(128)[2]);
    EXPECT_EQ(table.tiers(), 2U);
    EXPECT_EQ(table.deadline_ms(), 0U);
    EXPECT_EQ(table.options()->priority(), 3);
    EXPECT_EQ(table.options()->trace()->str(), "trace-1");
    client.answer_lookup(asked, 3);
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  ASSERT_FINE(space);
  EXPECT_EQ(space->fingerprint.bytes[0], 0xab);
  auto digests = some_digests(128);
  auto found = connected.lookup({.in = *space,
                                 .what = prefix::of_digests(digests),
                                 .tiers = 2,
                                 .options = {.priority = 3, .trace = "trace-1"}});
  ASSERT_FINE(found);
  EXPECT_EQ(found->found_chunks, 3U);
  EXPECT_EQ(found->usable_tokens, 768U);
  EXPECT_EQ(found->tiers, std::vector<tier_kind>(3, tier_kind::host));
  EXPECT_FALSE(found->held);
}

TEST(Lookup, SendsEveryPartOfATokenPrefix) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    auto asked = client.expect(kind::lookup);
    const auto& prefix = *asked.as<wire::Lookup>().prefix();
    EXPECT_EQ(prefix.tokens()->size(), 3U);
    EXPECT_EQ(prefix.tokens()->Get(2), 30U);
    EXPECT_EQ(prefix.parent()->size(), 32U);
    EXPECT_EQ(prefix.parent_tokens(), 256U);
    EXPECT_EQ(prefix.lora()->str(), "adapter");
    EXPECT_EQ(prefix.salt()->str(), "pepper");
    EXPECT_EQ(prefix.items()->Get(0)->identifier()->str(), "image");
    EXPECT_EQ(prefix.items()->Get(0)->tokens(), 2U);
    EXPECT_EQ(prefix.tags()->Get(1)->str(), "b");
    EXPECT_GT(asked.as<wire::Lookup>().deadline_ms(), 0U);
    client.answer_lookup(asked, 0);
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  ASSERT_FINE(space);
  std::vector<uint32_t> tokens{10, 20, 30};
  std::vector<uint8_t> parent(32, 4);
  std::vector<item> items{{"image", 1, 2}};
  std::vector<std::string_view> tags{"a", "b"};
  auto what = prefix::of_tokens(tokens);
  what.parent = parent;
  what.parent_tokens = 256;
  what.lora = "adapter";
  what.salt = "pepper";
  what.items = items;
  what.tags = tags;
  auto found = connected.lookup({.in = *space, .what = what}, within(std::chrono::minutes(1)));
  ASSERT_FINE(found);
  EXPECT_EQ(found->found_chunks, 0U);
  EXPECT_TRUE(found->tiers.empty());
}

TEST(Lookup, AnErrorAnswerHasItsCodeAndText) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    client.refuse(client.receive().id, errc::busy, "64 lookups are in flight");
    client.answer_lookup(client.receive(), 1);
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto digests = some_digests(1);
  EXPECT_FAILS(connected.lookup({.in = *space, .what = prefix::of_digests(digests)}), errc::busy,
               "64 lookups");
  EXPECT_TRUE(connected.lookup({.in = *space, .what = prefix::of_digests(digests)}))
      << "the connection goes on";
}

TEST(Lookup, ASpaceOfAnotherConnectionIsRefusedHere) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.drain();
  });
  auto connected = daemon.connect();
  auto digests = some_digests(1);
  EXPECT_FAILS(connected.lookup({.in = {}, .what = prefix::of_digests(digests)}), errc::bad_request,
               "a space that");
}

TEST(Lease, IsReleasedAtItsDestruction) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    client.answer_lookup(client.expect(kind::lookup), 2, 0x77);
    auto release = client.expect(kind::release);
    EXPECT_EQ(protocol::to_lease_id(release.as<wire::Release>().lease()), lease_of(0x77));
    client.answer(release, [](body_builder& body) { return wire::CreateReleaseAnswer(body); });
    client.answer_lookup(client.expect(kind::lookup), 1);
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto digests = some_digests(2);
  {
    auto found = connected.lookup({.in = *space, .what = prefix::of_digests(digests), .lease = true});
    ASSERT_FINE(found);
    EXPECT_EQ(found->held.id(), lease_of(0x77));
    auto moved = std::move(found->held);
    EXPECT_TRUE(moved);
    EXPECT_FALSE(found->held);
  }
  // The release was answered meanwhile, which the next request tolerates.
  EXPECT_TRUE(connected.lookup({.in = *space, .what = prefix::of_digests(digests)}));
}

TEST(Lease, OutlivesItsConnectionHarmlessly) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.drain();
  });
  lease held;
  {
    auto connected = daemon.connect();
    held = connected.adopt(lease_of(3));
  }
  held.release();
  EXPECT_FALSE(held);
}

TEST(Regions, TheDaemonGetsASealedDescriptor) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    auto asked = client.expect(kind::register_region);
    EXPECT_EQ(asked.as<wire::RegisterRegion>().bytes(), 8192U);
    ASSERT_EQ(asked.descriptors.size(), 1U);
    EXPECT_TRUE(::fcntl(asked.descriptors[0].get(), F_GET_SEALS) & F_SEAL_SHRINK);
    uint8_t byte = 0;
    EXPECT_EQ(::pread(asked.descriptors[0].get(), &byte, 1, 100), 1);
    EXPECT_EQ(byte, 42);
    client.answer(asked, [](body_builder& body) { return wire::CreateRegisterRegionAnswer(body, 6, true); });
    EXPECT_EQ(client.expect(kind::unregister_region).as<wire::UnregisterRegion>().region(), 6U);
  });
  auto connected = daemon.connect();
  auto memory = region::create("test", 8192);
  ASSERT_FINE(memory);
  memory->data()[100] = 42;
  auto registered = connected.register_region(*memory);
  ASSERT_FINE(registered);
  EXPECT_TRUE(registered->mapped());
  EXPECT_EQ(registered->bytes(), 8192U);
}

TEST(Regions, LoadsAndStoresNameThemWithTheirRuns) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    client.answer_register_region(6);
    auto load = client.expect(kind::load);
    const auto& loads = load.as<wire::Load>();
    EXPECT_EQ(loads.region(), 6U);
    EXPECT_EQ(protocol::to_lease_id(loads.lease()), lease_of(1));
    EXPECT_EQ(loads.first_chunk(), 2U);
    EXPECT_EQ(loads.runs()->Get(1)->stride(), 1024U);
    EXPECT_EQ(loads.runs_per_object()->Get(0), 2U);
    client.answer(load, [](body_builder& body) {
      auto by_tier = body.CreateVector(std::vector<uint64_t>{0, 4096, 0, 0});
      return wire::CreateLoadAnswer(body, 1, 1, 256, 4096, by_tier);
    });
    auto store = client.expect(kind::store);
    EXPECT_EQ(store.as<wire::Store>().space(), 5U);
    EXPECT_EQ(store.as<wire::Store>().chunks(), 1U);
    client.answer(store, [](body_builder& body) { return wire::CreateStoreAnswer(body, 1, 0, 4096); });
    client.drain();
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto memory = region::create("test", 8192);
  auto registered = connected.register_region(*memory);
  ASSERT_FINE(registered);
  std::vector<run> runs{{0, 1024}, {2048, 1024, 1024, 3}};
  std::vector<uint32_t> per_object{2};
  auto loaded = connected.load({.lease = lease_of(1),
                                .range = {2, 1},
                                .region = &*registered,
                                .runs = runs,
                                .runs_per_object = per_object});
  ASSERT_FINE(loaded);
  EXPECT_EQ(loaded->bytes_by_tier, (std::vector<uint64_t>{0, 4096, 0, 0}));
  auto digests = some_digests(1);
  std::vector<run> one{{0, 4096}};
  auto stored = connected.store({.in = *space,
                                 .what = prefix::of_digests(digests),
                                 .range = {0, 1},
                                 .region = &*registered,
                                 .runs = one});
  ASSERT_FINE(stored);
  EXPECT_EQ(stored->bytes, 4096U);
  EXPECT_FAILS(connected.load({.lease = lease_of(1), .runs = one}), errc::bad_request,
               "a region that is registered");
}

TEST(Status, IsReadIntoPlainValues) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_status(
        [](body_builder& body) {
          std::vector tiers{
              wire::CreateTierStatusDirect(body, "host", "ready", nullptr, 1000, 400, 600, 500)};
          return wire::CreateGroupStatusDirect(body, "main", "/run/x", false, 1, 2, &tiers);
        },
        "engine");
  });
  auto connected = daemon.connect();
  auto status = connected.admin().status();
  ASSERT_FINE(status);
  EXPECT_EQ(status->uptime, std::chrono::seconds(5));
  ASSERT_EQ(status->groups.size(), 1U);
  ASSERT_EQ(status->groups[0].tiers.size(), 1U);
  EXPECT_EQ(status->groups[0].tiers[0].used_bytes, 400U);
  EXPECT_EQ(status->groups[0].tiers[0].reason, "");
  EXPECT_EQ(status->clients.at(0).pid, 123);
  EXPECT_EQ(status->ring, std::vector<std::string>{"single_issuer"});
}
