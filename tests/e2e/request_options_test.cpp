// Options that a request may have, or that its client declares once for all requests in a space: which tiers
// are searched, whether anything is found or stored at all, its deadline and its priority.
#include "tests/support/scrape.hpp"
#include "wire_requests.hpp"
#include "workload.hpp"

namespace terrace::e2e {
namespace request_options_test {

constexpr uint32_t chunks = 6;
constexpr uint32_t in_host = 1U << 1, on_disk = 1U << 2;

client::space_spec space_with(const client::request_defaults& defaults) {
  auto spec = test_space();
  spec.defaults = defaults;
  return spec;
}

/// A chain of which host memory has the first half, and the disk all.
class RequestOptions : public testing::Test {
 protected:
  RequestOptions()
      : daemon_({.host_bytes = 32 * mebibyte,
                 .disk_bytes = 64 * mebibyte,
                 .connection = "request_deadline = \"600s\"\n",
                 .metrics = "127.0.0.1:" + std::to_string(port_)}) {
    EXPECT_TRUE(daemon_.await_log("joined"));
    EXPECT_EQ(tester(daemon_.socket()).store(chain), chunks);
    EXPECT_EQ(daemon_.terminate(), 0);
    daemon_.start();
    EXPECT_TRUE(daemon_.await_log("6 objects found"));
    EXPECT_EQ(tester(daemon_.socket()).load_and_check(half), half.size());
  }
  tester client_with(const client::request_defaults& defaults) {
    return tester(daemon_.socket(), "client", 8 * object_bytes, space_with(defaults));
  }
  double metric(const std::string& name) const {
    return test::number_behind(test::scrape(port_), name + R"({group="default"})");
  }

  uint16_t port_ = test::free_port();
  daemon_under_test daemon_;
  std::vector<digest> chain = chain_of(1, chunks);
  std::vector<digest> half{chain.begin(), chain.begin() + chunks / 2};
};

TEST_F(RequestOptions, ARequestThatLoadsNothingFindsNothing) {
  tester client(daemon_.socket());
  auto lookup = client.lookup_of(chain, true);
  lookup.options.no_load = true;
  auto found = client->lookup(lookup, patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->requested_chunks, chunks);
  EXPECT_EQ(found->found_chunks, 0U);
  ASSERT_TRUE(found->missing);
  EXPECT_EQ(found->missing->chunk, 0U);
  EXPECT_FALSE(found->held);

  auto load = client.load_of(chain);
  load.options.no_load = true;
  auto loaded = client->load(load, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 0U);
  ASSERT_TRUE(loaded->missing);
  EXPECT_EQ(loaded->missing->chunk, 0U);

  client::prefetch_request prefetch{.in = client.space(), .what = client::prefix::of_digests(chain)};
  prefetch.options.no_load = true;
  auto brought = client->prefetch(prefetch, patiently());
  ASSERT_TRUE(brought) << brought.error().text;
  EXPECT_EQ(brought->found_chunks, 0U);
  EXPECT_EQ(client.lookup(chain, false, in_host).found_chunks, half.size()) << "nothing was brought there";
  EXPECT_EQ(client.lookup(chain).found_chunks, chunks) << "the others are as before";
}

TEST_F(RequestOptions, ARequestThatStoresNothingIsAnsweredAndLeavesNothing) {
  tester client(daemon_.socket());
  auto other = chain_of(2, 4);
  auto store = client.store_of(other);
  store.options.no_store = true;
  auto stored = client->store(store, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 0U);
  EXPECT_EQ(stored->present_chunks, 0U);
  EXPECT_EQ(stored->bytes, 0U);

  auto reserved = client->reserve(
      {.in = client.space(), .what = client::prefix::of_digests(other), .options = {.no_store = true}},
      patiently());
  ASSERT_TRUE(reserved) << reserved.error().text;
  ASSERT_EQ(reserved->objects().size(), other.size());
  for (const auto& object : reserved->objects())
    EXPECT_TRUE(object.empty()) << "there is nothing to write";
  auto committed = client->commit(std::move(*reserved), patiently());
  ASSERT_TRUE(committed) << committed.error().text;
  EXPECT_EQ(committed->stored_chunks, 0U);
  EXPECT_EQ(committed->present_chunks, 0U);
  EXPECT_EQ(client.lookup(other).found_chunks, 0U);
  EXPECT_EQ(client.store(other), 4U);
}

TEST_F(RequestOptions, ALoadOrPrefetchTakesOnlyWhatTheChosenTiersHave) {
  tester client(daemon_.socket());
  auto load = client.load_of(chain);
  load.tiers = in_host;
  auto loaded = client->load(load, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, half.size());
  for (size_t i = 0; i < half.size(); ++i)
    EXPECT_TRUE(has_content(chain[i], client.piece(i)));
  ASSERT_TRUE(loaded->missing);
  EXPECT_EQ(loaded->missing->chunk, half.size());

  // Loads from the second chunk on: a missing one is counted from the start of the prefix.
  load = client.load_of(chain, {1, chunks - 1});
  load.tiers = in_host;
  loaded = client->load(load, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, half.size() - 1);
  ASSERT_TRUE(loaded->missing);
  EXPECT_EQ(loaded->missing->chunk, half.size());

  client::prefetch_request prefetch{.in = client.space(), .what = client::prefix::of_digests(chain)};
  prefetch.tiers = in_host;
  auto brought = client->prefetch(prefetch, patiently());
  ASSERT_TRUE(brought) << brought.error().text;
  EXPECT_EQ(brought->found_chunks, half.size());

  load = client.load_of(chain);
  load.tiers = on_disk;
  loaded = client->load(load, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, chunks);
  EXPECT_FALSE(loaded->missing);
}

TEST_F(RequestOptions, ASpacesDefaultsHoldForItsRequestsAndNoOtherClients) {
  auto idle = client_with({.no_load = true, .no_store = true});
  auto other = chain_of(3, 2);
  EXPECT_EQ(idle.lookup(chain).found_chunks, 0U);
  auto stored = idle->store(idle.store_of(other), patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 0U);
  EXPECT_EQ(metric("terrace_no_load_requests_total"), 1);
  EXPECT_EQ(metric("terrace_no_store_requests_total"), 1);

  auto request = idle.lookup_of(chain); // a request takes precedence over its space
  request.options.no_load = false;
  auto found = idle->lookup(request, patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->found_chunks, chunks);
  auto store = idle.store_of(other);
  store.options.no_store = false;
  stored = idle->store(store, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, other.size());

  tester neighbour(daemon_.socket());
  EXPECT_EQ(neighbour.lookup(chain).found_chunks, chunks);
  EXPECT_EQ(neighbour.space().fingerprint, idle.space().fingerprint) << "defaults are not part of a space";
}

TEST_F(RequestOptions, DefaultTiersAreSearchedUnlessARequestNamesOthers) {
  auto client = client_with({.tiers = in_host});
  EXPECT_EQ(client.lookup(chain).found_chunks, half.size());
  EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, chunks);
  auto loaded = client->load(client.load_of(chain), patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, half.size());
}

TEST_F(RequestOptions, ADefaultDeadlineEndsWhatWouldWaitLonger) {
  test::raw_client hasty(daemon_.socket());
  ASSERT_TRUE(hasty.greet());
  hasty.send(open_space({.deadline_ms = 1}));
  auto opened = hasty.receive();
  ASSERT_TRUE(opened);
  ASSERT_EQ(opened->code(), errc::ok);
  // Awaits a lookup that nobody begins: without its deadline the request would wait for
  // connection.request_deadline.
  auto id = std::vector<uint8_t>(16, 7);
  hasty.send(prefetch(opened->as<wire::OpenSpaceAnswer>().space(), {.prefix = {}, .id = id}));
  auto answer = hasty.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code(), errc::deadline);
}

TEST_F(RequestOptions, DefaultTiersThatDoNotExistAreRefused) {
  auto connected = client::connection::connect({.path = daemon_.socket(), .name = "wrong"}, patiently());
  ASSERT_TRUE(connected) << connected.error().text;
  auto refused = connected->open_space(space_with({.tiers = 64}), patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("tiers of the defaults"), std::string::npos) << refused.error().text;
}

} // namespace request_options_test
} // namespace terrace::e2e
