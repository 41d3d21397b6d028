// Pools by the shapes of their tensors, and requests that name pools.
#include "scripted_daemon.hpp"

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

namespace {

space_spec shaped_space() {
  auto spec = some_space();
  spec.pools[0] = {
      .name = "kv",
      .object_bytes = 0,
      .tensors = {{.layers = 4, .hidden = 128},
                  {.format = tensor_format::kv_mla,
                   .dtype = "float8",
                   .kv_size = 1,
                   .layers = 2,
                   .hidden = 64,
                   .first_layer = 4}},
      .layer_groups = 2,
  };
  return spec;
}

flatbuffers::Offset<wire::OpenSpaceAnswer> two_groups(body_builder& body) {
  std::vector<wire::TensorPlace> first{{0, 1000, 0, 2}, {1000, 24, 4, 1}};
  std::vector<wire::TensorPlace> second{{0, 1000, 2, 2}, {1000, 24, 5, 1}};
  std::vector pools{wire::CreateOpenPoolDirect(body, "kv.0", 1024, &first),
                    wire::CreateOpenPoolDirect(body, "kv.1", 1024, &second)};
  auto fingerprint = body.CreateVector(std::vector<uint8_t>(32, 0xab));
  return wire::CreateOpenSpaceAnswer(body, 5, fingerprint, body.CreateVector(pools));
}

/// Refuses a request after looking at it: the answers are not tested here.
template <class T, class Look>
void look_and_refuse(peer& client, kind expected, Look&& look) {
  auto asked = client.expect(expected);
  look(asked.as<T>());
  client.refuse(asked.id, errc::busy, "enough seen");
}

void expect_pools(const flatbuffers::Vector<uint8_t>* pools) {
  ASSERT_NE(pools, nullptr);
  ASSERT_EQ(pools->size(), 2U);
  EXPECT_EQ(pools->Get(0), 1U);
  EXPECT_EQ(pools->Get(1), 3U);
}

} // namespace

TEST(Pools, AreStatedByTensorsAndLayerGroups) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    auto open = client.expect(kind::open_space);
    const auto* pool = open.as<wire::OpenSpace>().pools()->Get(0);
    EXPECT_EQ(pool->object_bytes(), 0U);
    EXPECT_EQ(pool->layer_groups(), 2U);
    ASSERT_NE(pool->tensors(), nullptr);
    ASSERT_EQ(pool->tensors()->size(), 2U);
    const auto* kv = pool->tensors()->Get(0);
    EXPECT_EQ(kv->format(), wire::TensorFormat::kv_2ltd);
    EXPECT_EQ(kv->dtype(), nullptr); // the dtype of the space
    EXPECT_EQ(kv->kv_size(), 2U);
    EXPECT_EQ(kv->layers(), 4U);
    EXPECT_EQ(kv->hidden(), 128U);
    const auto* latent = pool->tensors()->Get(1);
    EXPECT_EQ(latent->format(), wire::TensorFormat::kv_mla);
    EXPECT_EQ(latent->dtype()->str(), "float8");
    EXPECT_EQ(latent->kv_size(), 1U);
    EXPECT_EQ(latent->first_layer(), 4U);
    client.answer(open, two_groups);
  });
  auto connected = daemon.connect();
  auto opened = connected.open_space(shaped_space());
  ASSERT_FINE(opened);
  auto pools = connected.pools_of(*opened);
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[1].name, "kv.1");
  EXPECT_EQ(pools[1].object_bytes, 1024U);
  ASSERT_EQ(pools[1].tensors.size(), 2U);
  EXPECT_EQ(pools[1].tensors[1].offset, 1000U);
  EXPECT_EQ(pools[1].tensors[1].bytes, 24U);
  EXPECT_EQ(pools[1].tensors[1].first_layer, 5U);
  EXPECT_EQ(pools[1].tensors[1].layers, 1U);
}

TEST(Pools, OfASpaceThatWasNeverOpenedAreNone) {
  scripted_daemon daemon([](peer& client) { client.welcome(); });
  auto connected = daemon.connect();
  EXPECT_TRUE(connected.pools_of({}).empty());
}

TEST(Pools, RequestsNameThoseThatAreWanted) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    client.answer_register_region(6);
    look_and_refuse<wire::Load>(client, kind::load, [](const auto& table) { expect_pools(table.pools()); });
    look_and_refuse<wire::Store>(client, kind::store, [](const auto& table) { expect_pools(table.pools()); });
    look_and_refuse<wire::Reserve>(client, kind::reserve,
                                   [](const auto& table) { expect_pools(table.pools()); });
    look_and_refuse<wire::ReadLease>(client, kind::read_lease,
                                     [](const auto& table) { expect_pools(table.pools()); });
    look_and_refuse<wire::ReadLease>(client, kind::read_lease,
                                     [](const auto& table) { EXPECT_EQ(table.pools(), nullptr); });
    client.drain();
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  auto memory = region::create("test", 8192);
  auto registered = connected.register_region(*memory);
  ASSERT_FINE(registered);
  auto digests = some_digests(1);
  auto what = prefix::of_digests(digests);
  std::vector<run> runs{{0, 4096}, {4096, 4096}};
  std::vector<uint8_t> pools{1, 3};
  EXPECT_FAILS(
      connected.load({.in = *space, .what = what, .region = &*registered, .runs = runs, .pools = pools}),
      errc::busy, "seen");
  EXPECT_FAILS(
      connected.store({.in = *space, .what = what, .region = &*registered, .runs = runs, .pools = pools}),
      errc::busy, "seen");
  EXPECT_FAILS(connected.reserve({.in = *space, .what = what, .pools = pools}), errc::busy, "seen");
  EXPECT_FAILS(connected.read_lease(lease_of(1), {}, {}, pools), errc::busy, "seen");
  EXPECT_FAILS(connected.read_lease(lease_of(1)), errc::busy, "seen");
}

TEST(Pools, OfASpaceStandInTheStatus) {
  scripted_daemon daemon([](peer& client) {
    client.welcome();
    client.answer_status([](body_builder& body) {
      std::vector<wire::TensorPlace> places{{0, 4096, 8, 4}};
      std::vector pools{wire::CreateOpenPoolDirect(body, "kv", 4096, &places)};
      std::vector<uint8_t> fingerprint(32, 0xcd);
      std::vector spaces{wire::CreateSpaceStatusDirect(body, 3, "llama", &fingerprint, &pools)};
      std::vector<flatbuffers::Offset<wire::TierStatus>> tiers;
      return wire::CreateGroupStatusDirect(body, "main", "/run/x", false, 1, 0, &tiers, &spaces);
    });
  });
  auto connected = daemon.connect();
  auto status = connected.admin().status();
  ASSERT_FINE(status);
  ASSERT_EQ(status->groups.at(0).open_spaces.size(), 1U);
  const auto& space = status->groups[0].open_spaces[0];
  EXPECT_EQ(space.space, 3U);
  EXPECT_EQ(space.model, "llama");
  EXPECT_EQ(space.fingerprint.bytes[31], 0xcd);
  ASSERT_EQ(space.pools.size(), 1U);
  ASSERT_EQ(space.pools[0].tensors.size(), 1U);
  EXPECT_EQ(space.pools[0].tensors[0].first_layer, 8U);
}
