// A chunk has an object for each group of the model's layers.
#include "pool_client.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace terrace::e2e {
namespace {

TEST(LayerGroups, AreStoredAndLoadedOneByOne) {
  daemon_under_test daemon;
  pool_client client(daemon.socket(), layered_space());
  ASSERT_EQ(client.pools().size(), 2U);
  EXPECT_EQ(client.pools()[1].name, "kv.1");
  EXPECT_EQ(client.pools()[1].object_bytes, (96U + 24U) << 10);
  ASSERT_EQ(client.pools()[1].tensors.size(), 2U);
  EXPECT_EQ(client.pools()[1].tensors[0].first_layer, 3U);
  EXPECT_EQ(client.pools()[1].tensors[1].offset, 96U << 10);
  EXPECT_EQ(client.pools()[1].tensors[1].bytes, 24U << 10);
  EXPECT_EQ(client.pools()[1].tensors[1].first_layer, 9U);

  auto chain = chain_of(1, 4);
  auto stored = client.store(chain, {0, 4}, {0});
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 4U);
  EXPECT_EQ((*client).lookup(chain).found_chunks, 0U) << "half of the layers are no prefix";
  EXPECT_EQ(client.load_and_check(chain, {0, 4}, {0}), 4U) << "what is there can be loaded";
  EXPECT_EQ(client.load_and_check(chain, {0, 4}, {1}), 0U);

  ASSERT_TRUE(client.store(chain, {0, 3}, {1}));
  EXPECT_EQ((*client).lookup(chain).found_chunks, 3U);
  EXPECT_EQ(client.load_and_check(chain, {1, 2}, {1}), 2U);
  EXPECT_EQ(client.load_and_check(chain, {0, 3}, {0, 1}, false), 3U) << "without a list it is all";
  EXPECT_EQ(client.load_and_check(chain, {0, 4}, {0, 1}), 3U);
}

TEST(LayerGroups, AreReadInPlaceUnderALease) {
  daemon_under_test daemon;
  pool_client client(daemon.socket(), layered_space());
  auto chain = chain_of(1, 3);
  ASSERT_TRUE(client.store(chain, {0, 3}, {0, 1}));
  auto found = (*client).lookup(chain, true);
  ASSERT_EQ(found.found_chunks, 3U);
  std::vector<uint8_t> second{1};
  auto places = client->read_lease(found.held.id(), {1, 2}, patiently(), second);
  ASSERT_TRUE(places) << places.error().text;
  ASSERT_EQ(places->objects.size(), 2U);
  EXPECT_EQ(places->objects[0].size(), client.pools()[1].object_bytes);
  EXPECT_TRUE(has_content(content_of(chain[1], 1), places->objects[0]));
  EXPECT_TRUE(has_content(content_of(chain[2], 1), places->objects[1]));
  auto all = client->read_lease(found.held.id(), {}, patiently());
  ASSERT_TRUE(all) << all.error().text;
  ASSERT_EQ(all->objects.size(), 6U);
  EXPECT_TRUE(has_content(content_of(chain[2], 0), all->objects[4]));
}

TEST(LayerGroups, AreReservedAndCommittedOneByOne) {
  daemon_under_test daemon;
  pool_client client(daemon.socket(), layered_space());
  auto chain = chain_of(1, 2);
  for (uint8_t group : {uint8_t{0}, uint8_t{1}}) {
    EXPECT_EQ((*client).lookup(chain).found_chunks, 0U);
    std::vector<uint8_t> wanted{group};
    client::reserve_request request;
    request.in = (*client).space();
    request.what = client::prefix::of_digests(chain);
    request.pools = wanted;
    auto reserved = client->reserve(request, patiently());
    ASSERT_TRUE(reserved) << reserved.error().text;
    ASSERT_EQ(reserved->objects().size(), 2U);
    for (size_t c = 0; c < 2; ++c)
      fill_content(content_of(chain[c], group), reserved->objects()[c]);
    auto committed = client->commit(std::move(*reserved), patiently());
    ASSERT_TRUE(committed) << committed.error().text;
    EXPECT_EQ(committed->stored_chunks, 2U);
  }
  EXPECT_EQ((*client).lookup(chain).found_chunks, 2U);
  EXPECT_EQ(client.load_and_check(chain, {0, 2}, {0, 1}), 2U);
}

TEST(LayerGroups, OfAnUnsealedRegionGoThroughItsDescriptor) {
  daemon_under_test daemon;
  pool_client client(daemon.socket(), layered_space());
  auto chain = chain_of(1, 2);
  ASSERT_TRUE(client.store(chain, {0, 2}, {0, 1}));
  unique_fd memory(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(memory.get(), static_cast<off_t>(mebibyte)), 0);
  auto region = client->register_region(memory.get(), mebibyte, patiently());
  ASSERT_TRUE(region) << region.error().text;
  ASSERT_FALSE(region->mapped());
  uint64_t bytes = client.pools()[1].object_bytes;
  // Each object has two runs with a gap between them.
  std::vector<client::run> runs;
  for (uint64_t object = 0; object < 4; ++object) {
    runs.push_back({.offset = object * 2 * bytes, .bytes = 4096});
    runs.push_back({.offset = object * 2 * bytes + 8192, .bytes = bytes - 4096});
  }
  std::vector<uint32_t> per_object(4, 2);
  auto request = (*client).load_of(chain, {0, 2});
  request.region = &*region;
  request.runs = runs;
  request.runs_per_object = per_object;
  auto loaded = client->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  ASSERT_EQ(loaded->delivered_chunks, 2U);
  std::vector<uint8_t> got(bytes);
  for (size_t object = 0; object < 4; ++object) {
    auto at = static_cast<off_t>(object * 2 * bytes);
    ASSERT_EQ(::pread(memory.get(), got.data(), 4096, at), 4096);
    ASSERT_EQ(::pread(memory.get(), got.data() + 4096, bytes - 4096, at + 8192),
              static_cast<ssize_t>(bytes - 4096));
    EXPECT_TRUE(has_content(content_of(chain[object / 2], object % 2), got));
  }
  // Then out of it: a chain of its own from the second group's bytes alone.
  auto other = chain_of(2, 2);
  std::vector<uint8_t> second{1};
  auto store = (*client).store_of(other, {0, 2});
  store.region = &*region;
  store.runs = std::span(runs).subspan(2, 4);
  store.runs_per_object = std::span(per_object).first(2);
  store.pools = second;
  auto stored = client->store(store, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 2U);
  // When the file is truncated, the transfer fails and nothing else does.
  ASSERT_EQ(::ftruncate(memory.get(), 0), 0);
  auto gone = client->load(request, patiently());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, errc::gone);
  EXPECT_EQ(client.load_and_check(chain, {0, 2}, {0, 1}), 2U);
}

TEST(LayerGroups, ThatTheSpaceDoesNotHaveAreRefused) {
  daemon_under_test daemon;
  pool_client client(daemon.socket(), layered_space());
  auto chain = chain_of(1, 2);
  ASSERT_TRUE(client.store(chain, {0, 2}, {0, 1}));
  auto found = (*client).lookup(chain, true);
  std::vector<uint8_t> third{0, 2};
  const std::string why = "pool number 2 was asked for, the space has 2 pools";
  auto load = (*client).load_of(chain, {0, 2});
  load.pools = third;
  auto store = (*client).store_of(chain, {0, 2});
  store.pools = third;
  client::reserve_request reserve;
  reserve.in = (*client).space();
  reserve.what = client::prefix::of_digests(chain);
  reserve.pools = third;
  auto expect_refused = [&](const auto& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, errc::bad_request);
    EXPECT_EQ(answer.error().text, why);
  };
  expect_refused(client->load(load, patiently()));
  expect_refused(client->store(store, patiently()));
  expect_refused(client->reserve(reserve, patiently()));
  expect_refused(client->read_lease(found.held.id(), {}, patiently(), third));
  auto leased = (*client).load_of(chain, {0, 2});
  leased.what = {};
  leased.lease = found.held.id();
  leased.pools = third;
  expect_refused(client->load(leased, patiently()));
}

} // namespace
} // namespace terrace::e2e
