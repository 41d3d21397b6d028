// Another client finds what one has stored, and finds nothing before it is complete.
#include "workload.hpp"

#include <memory>

namespace terrace::e2e {
namespace {

TEST(Sharing, SecondClientFindsWhatTheFirstStoredAndReadsTheSameBytes) {
  daemon_under_test daemon;
  tester first(daemon.socket(), "first");
  tester second(daemon.socket(), "second");
  auto chain = chain_of(1, 4);
  EXPECT_EQ(second.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(first.store(chain), 4U);

  auto found = second.lookup(chain, true);
  EXPECT_EQ(found.requested_chunks, 4U);
  EXPECT_EQ(found.found_chunks, 4U);
  EXPECT_EQ(found.found_tokens, 4U * space_chunk_tokens);
  EXPECT_LT(found.usable_tokens, found.found_tokens);
  EXPECT_EQ(second.load_and_check(chain), 4U);
  auto places = second->read_lease(found.held.id(), {}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  ASSERT_EQ(places->objects.size(), 4U);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(has_content(chain[i], places->objects[i]));
}

TEST(Sharing, WhatIsPresentIsStoredOnce) {
  daemon_under_test daemon;
  tester first(daemon.socket(), "first");
  tester second(daemon.socket(), "second");
  auto chain = chain_of(1, 4);
  EXPECT_EQ(first.store(chain), 4U);
  uint64_t used = first.tier("host").used_bytes;
  auto again = second->store(second.store_of(chain), patiently());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->stored_chunks, 0U);
  EXPECT_EQ(again->present_chunks, 4U);
  EXPECT_EQ(again->bytes, 0U);
  EXPECT_EQ(second.tier("host").used_bytes, used);
  EXPECT_EQ(second.load_and_check(chain), 4U); // the region of the second store held zeros
}

TEST(Sharing, ClientsThatStoreTheSameIntoMemoryThatIsTooSmallAreNotToldThatOthersAbandonedIt) {
  daemon_under_test daemon({.host_bytes = 6 * mebibyte});
  std::vector<std::unique_ptr<tester>> clients;
  for (int i = 0; i < 6; ++i)
    clients.push_back(std::make_unique<tester>(daemon.socket(), "client"));
  std::vector<std::vector<digest>> chains;
  for (uint64_t seed = 0; seed < 4; ++seed)
    chains.push_back(chain_of(seed, 2));
  for (int round = 0; round < 20; ++round) {
    std::vector<client::ticket<client::store_result>> stores;
    for (auto& client : clients)
      for (const auto& chain : chains) {
        auto ticket = (*client)->async().store(client->store_of(chain), patiently());
        ASSERT_TRUE(ticket) << ticket.error().text;
        stores.push_back(std::move(*ticket));
      }
    for (auto& each : stores) {
      auto stored = each.wait(patiently());
      EXPECT_TRUE(stored) << stored.error().text; // all clients live, so none abandons its store
    }
  }
}

TEST(Sharing, SpacesThatDifferInAnyFieldShareNothing) {
  daemon_under_test daemon;
  tester first(daemon.socket());
  auto other_spec = test_space();
  other_spec.revision = "2";
  tester second(daemon.socket(), "other", 8 * object_bytes, other_spec);
  auto chain = chain_of(1, 2);
  first.store(chain);
  EXPECT_NE(first.space().fingerprint, second.space().fingerprint);
  EXPECT_EQ(second.lookup(chain).found_chunks, 0U);
}

TEST(Sharing, TokensAndTheDigestsTheyHashToAreTheSameChunks) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  std::vector<uint32_t> tokens(3 * space_chunk_tokens);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<uint32_t>(i * 7);
  auto chain = chain_of(1, 2);
  auto request = client.store_of(chain);
  request.what = client::prefix::of_tokens(std::span(tokens).first(2 * space_chunk_tokens));
  ASSERT_TRUE(client->store(request, patiently()));
  client::lookup_request ask;
  ask.in = client.space();
  ask.what = client::prefix::of_tokens(tokens);
  auto found = client->lookup(ask, patiently());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->requested_chunks, 3U);
  EXPECT_EQ(found->found_chunks, 2U);
  EXPECT_EQ(found->usable_tokens, 2U * space_chunk_tokens);
}

TEST(Sharing, ReservedObjectsAreInvisibleUntilTheyAreCommitted) {
  daemon_under_test daemon;
  tester writer(daemon.socket(), "writer");
  tester reader(daemon.socket(), "reader");
  auto chain = chain_of(1, 3);
  client::reserve_request request;
  request.in = writer.space();
  request.what = client::prefix::of_digests(chain);
  auto reserved = writer->reserve(request, patiently());
  ASSERT_TRUE(reserved) << reserved.error().text;
  ASSERT_EQ(reserved->objects().size(), 3U);
  EXPECT_EQ(reader.lookup(chain).found_chunks, 0U);
  for (size_t i = 0; i < 3; ++i)
    fill_content(chain[i], reserved->objects()[i]);
  EXPECT_EQ(reader.lookup(chain).found_chunks, 0U);
  auto committed = writer->commit(std::move(*reserved), patiently());
  ASSERT_TRUE(committed) << committed.error().text;
  EXPECT_EQ(committed->stored_chunks, 3U);
  EXPECT_EQ(reader.load_and_check(chain), 3U);

  auto again = writer->reserve(request, patiently());
  ASSERT_TRUE(again);
  for (auto place : again->objects())
    EXPECT_TRUE(place.empty()); // all are present, so there is nothing to write
}

TEST(Sharing, AbortedReservationGivesItsStagingMemoryBack) {
  daemon_under_test daemon; // each connection has 8 MiB of staging memory
  tester client(daemon.socket());
  for (uint64_t round = 0; round < 4; ++round) {
    auto chain = chain_of(round, 8);
    client::reserve_request request;
    request.in = client.space();
    request.what = client::prefix::of_digests(chain);
    auto reserved = client->reserve(request, patiently());
    ASSERT_TRUE(reserved) << reserved.error().text;
    auto beyond = chain_of(100, 1);
    request.what = client::prefix::of_digests(beyond);
    auto refused = client->reserve(request, patiently());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::no_space);
    EXPECT_NE(refused.error().text.find("staging"), std::string::npos) << refused.error().text;
    reserved->abort();
    EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  }
}

TEST(Sharing, AnAdapterAndASaltOfTheSameTextShareNothing) {
  daemon_under_test daemon;
  std::vector<uint32_t> prompt(2 * space_chunk_tokens, 5);
  auto with = [&](const char* lora, const char* salt) {
    auto what = client::prefix::of_tokens(prompt);
    what.lora = lora;
    what.salt = salt;
    return what;
  };
  const std::pair<const char*, const char*> kinds[] = {
      {"", ""}, {"support", ""}, {"", "support"}, {"support", "support"}};
  for (auto algorithm : {client::hash_algorithm::sha256_cbor, client::hash_algorithm::sha256,
                         client::hash_algorithm::xxh3_128}) {
    auto spec = test_space();
    spec.hash_block_tokens = space_chunk_tokens; // the first chunk is the first block
    spec.algorithm = algorithm;
    tester client(daemon.socket(), "client", 8 * object_bytes, spec);
    auto chain = chain_of(7, 2);
    for (auto [lora, salt] : kinds) {
      auto request = client.lookup_of(chain);
      request.what = with(lora, salt);
      EXPECT_EQ(client->lookup(request, patiently())->found_chunks, 0U)
          << "'" << lora << "', '" << salt << "'";
      auto store = client.store_of(chain);
      store.what = request.what;
      EXPECT_EQ(client->store(store, patiently())->stored_chunks, 2U);
      EXPECT_EQ(client->lookup(request, patiently())->found_chunks, 2U);
      auto session = client->open_session(client.space(), {.lora = lora, .salt = salt}, patiently());
      ASSERT_TRUE(session) << session.error().text;
      for (size_t end : {size_t{space_chunk_tokens}, prompt.size()}) // the second turn continues the first
        EXPECT_EQ(
            session->lookup(std::span(prompt).first(end), session->tokens(), {}, patiently())->found_chunks,
            end / space_chunk_tokens);
    }
  }
}

} // namespace
} // namespace terrace::e2e
