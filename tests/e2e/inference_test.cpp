// Requests that belong to one inference are one use of its prefix.
#include "workload.hpp"

namespace terrace::e2e {
namespace {

struct Inference : ::testing::Test {
  daemon_under_test daemon{daemon_options{.host_bytes = 4 * mebibyte}};
  tester client{daemon.socket()};

  void use(uint64_t chain, uint64_t inference) {
    auto digests = chain_of(chain, 1);
    auto request = client.lookup_of(digests, true);
    request.options.inference = inference;
    auto found = client->lookup(request, patiently());
    ASSERT_TRUE(found) << found.error().text;
    ASSERT_EQ(found->found_chunks, 1U);
  }
  bool there(uint64_t chain) { return client.lookup(chain_of(chain, 1)).found_chunks == 1; }
};

TEST_F(Inference, AskingAgainIsNoFurtherUse) {
  ASSERT_EQ(objects_in(4 * mebibyte), 3U);
  for (uint64_t chain : {1, 2, 3})
    ASSERT_EQ(client.store(chain_of(chain, 1)), 1U);
  use(1, 100);
  use(2, 200);
  use(1, 100);                                 // still belongs to the first use
  ASSERT_EQ(client.store(chain_of(4, 1)), 1U); // takes the place of 3, which nobody used
  ASSERT_EQ(client.store(chain_of(5, 1)), 1U); // takes the place of 1
  EXPECT_FALSE(there(3));
  EXPECT_FALSE(there(1));
  EXPECT_TRUE(there(2));
}

TEST_F(Inference, WithoutANumberEachLeaseIsAUse) {
  for (uint64_t chain : {1, 2, 3})
    ASSERT_EQ(client.store(chain_of(chain, 1)), 1U);
  use(1, 0);
  use(2, 0);
  use(1, 0);
  ASSERT_EQ(client.store(chain_of(4, 1)), 1U);
  ASSERT_EQ(client.store(chain_of(5, 1)), 1U);
  EXPECT_FALSE(there(2));
  EXPECT_TRUE(there(1));
}

TEST_F(Inference, ItsEndMayBeToldWithWhatIsKnownAndAlsoWhenNobodyBeganIt) {
  ASSERT_EQ(client.store(chain_of(1, 1)), 1U);
  use(1, 100);
  client::inference_end end{.inference = 100,
                            .output_tokens = 37,
                            .reason = client::finish_reason::tool_call,
                            .session_closed = false,
                            .think_time = std::chrono::milliseconds(500)};
  EXPECT_TRUE(client->end_inference(end, patiently()));
  EXPECT_TRUE(client->end_inference(end, patiently()));
  EXPECT_TRUE(client->end_inference({.inference = 4711}, patiently()));
}

} // namespace
} // namespace terrace::e2e
