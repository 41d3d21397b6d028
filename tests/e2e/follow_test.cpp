// One client announces what it is going to store; others follow until that is there, or until no more will come.
#include "workload.hpp"

namespace terrace::e2e {
namespace follow_test {

using ticket = client::ticket<client::announced_chunks>;

lookup_id named(uint8_t number) {
  lookup_id id;
  id.bytes.fill(number);
  return id;
}

struct Follow : ::testing::Test {
  ticket announce(tester& by, uint8_t number, const std::vector<digest>& what) {
    client::announcement request;
    request.in = by.space();
    request.what = client::prefix::of_digests(what);
    request.name = named(number);
    auto sent = by->async().announce(request, patiently());
    EXPECT_TRUE(sent) << sent.error().text;
    return std::move(*sent);
  }
  ticket follow(uint8_t number, uint32_t chunks = 0) {
    auto sent = decode->async().follow(named(number), chunks, patiently());
    EXPECT_TRUE(sent) << sent.error().text;
    return std::move(*sent);
  }
  /// The first `end` chunks of the chain are stored.
  void store(tester& by, uint32_t first, uint32_t end) {
    auto request = by.store_of(chain, {first, end - first});
    for (uint32_t i = first; i < end; ++i)
      fill_content(chain[i], by.piece(i - first));
    auto done = by->store(request, patiently());
    ASSERT_TRUE(done) << done.error().text;
  }
  static bool waits(tester& by, ticket& asked) {
    by.status(); // what was sent before has been served
    return !asked.ready();
  }
  static void expect_error(const result<client::announced_chunks>& answer, errc code) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(to_string(answer.error().code), to_string(code)) << answer.error().text;
  }
  static void expect(ticket& asked, uint32_t found, uint32_t announced, bool ended) {
    auto answer = asked.wait(patiently());
    ASSERT_TRUE(answer) << answer.error().text;
    EXPECT_EQ(answer->found, found);
    EXPECT_EQ(answer->announced, announced);
    EXPECT_EQ(answer->ended, ended);
  }

  daemon_under_test daemon;
  tester prefill{daemon.socket(), "prefill"};
  tester worker{daemon.socket(), "worker"};
  tester decode{daemon.socket(), "decode"};
  std::vector<digest> chain = chain_of(1, 6);
};

TEST_F(Follow, ItIsAnsweredWhenAllIsStoredByWhoeverStoresIt) {
  auto announced = announce(prefill, 1, chain);
  auto all = follow(1);
  auto some = follow(1, 3);
  store(worker, 0, 2);
  EXPECT_TRUE(waits(decode, some));
  store(worker, 2, 4);
  auto answer = some.wait(patiently());
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_GE(answer->found, 3U);
  EXPECT_FALSE(answer->ended);
  EXPECT_TRUE(waits(decode, all));
  EXPECT_TRUE(waits(prefill, announced));
  store(worker, 4, 6);
  answer = all.wait(patiently());
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->found, 6U);
  expect(announced, 6, 6, true);
  EXPECT_EQ(decode.load_and_check(chain), 6U);
  auto late = follow(1, 100);
  expect(late, 6, 6, true);
}

TEST_F(Follow, WhoAsksBeforeItIsAnnouncedWaitsToo) {
  auto early = follow(1, 2);
  EXPECT_TRUE(waits(decode, early));
  store(worker, 0, 2);
  EXPECT_TRUE(waits(decode, early)) << "nobody has announced it";
  auto announced = announce(prefill, 1, chain);
  auto answer = early.wait(patiently());
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->found, 2U);
}

TEST_F(Follow, WhatIsPresentAlreadyIsAnsweredAtOnce) {
  store(worker, 0, 6);
  auto announced = announce(prefill, 1, chain);
  expect(announced, 6, 6, true);
  auto all = follow(1);
  expect(all, 6, 6, true);
}

TEST_F(Follow, ItCountsNoHitsAndMisses) {
  auto before = worker.tier("host");
  auto announced = announce(prefill, 1, chain);
  EXPECT_TRUE(waits(prefill, announced));
  store(worker, 0, 6);
  expect(announced, 6, 6, true);
  auto after = worker.tier("host");
  EXPECT_EQ(after.hits, before.hits);
  EXPECT_EQ(after.misses, before.misses);
}

TEST_F(Follow, ChunksThatAreWrittenInStagingMemoryCount) {
  auto announced = announce(prefill, 1, chain);
  client::reserve_request request;
  request.in = worker.space();
  request.what = client::prefix::of_digests(chain);
  auto reserved = worker->reserve(request, patiently());
  ASSERT_TRUE(reserved) << reserved.error().text;
  for (size_t i = 0; i < chain.size(); ++i)
    fill_content(chain[i], reserved->objects()[i]);
  ASSERT_TRUE(worker->commit(std::move(*reserved), patiently()));
  expect(announced, 6, 6, true);
  EXPECT_EQ(decode.load_and_check(chain), 6U);
}

TEST_F(Follow, AChunkIsThereWhenAllRanksHaveStoredIt) {
  auto two_ranks = test_space();
  two_ranks.world_size = 2;
  tester first(daemon.socket(), "rank 0", 8 * object_bytes, two_ranks);
  two_ranks.rank = 1;
  tester second(daemon.socket(), "rank 1", 8 * object_bytes, two_ranks);
  auto announced = announce(first, 1, chain);
  auto some = follow(1, 3);
  store(first, 0, 6);
  EXPECT_TRUE(waits(decode, some));
  store(second, 0, 3);
  expect(some, 3, 6, false);
  store(second, 3, 6);
  expect(announced, 6, 6, true);
}

TEST_F(Follow, TheEndOfWhoAnnouncedItEndsTheWait) {
  auto all = follow(1);
  {
    tester other(daemon.socket(), "another prefill");
    auto announced = announce(other, 1, chain);
    store(worker, 0, 2);
    auto some = follow(1, 2);
    expect(some, 2, 6, false);
    EXPECT_TRUE(waits(decode, all));
  }
  expect(all, 2, 6, true);
  EXPECT_EQ(decode.lookup(chain).found_chunks, 2U);
  auto again = announce(prefill, 1, chain); // the name is free again
  store(worker, 2, 6);
  expect(again, 6, 6, true);
}

TEST_F(Follow, WhoAnnouncedItCanTakeItBack) {
  auto announced = announce(prefill, 1, chain);
  auto all = follow(1);
  EXPECT_TRUE(waits(decode, all));
  EXPECT_TRUE(announced.cancel(patiently()).value());
  expect_error(announced.wait(patiently()), errc::cancelled);
  expect(all, 0, 6, true);
}

TEST_F(Follow, AnAnnouncementHasADeadline) {
  client::announcement request;
  request.in = prefill.space();
  request.what = client::prefix::of_digests(chain);
  request.name = named(1);
  auto until = client::within(std::chrono::milliseconds(30));
  auto announced = prefill->async().announce(request, until);
  ASSERT_TRUE(announced);
  auto all = follow(1);
  expect(all, 0, 6, true);
  expect_error(announced->wait(patiently()), errc::deadline);
}

TEST_F(Follow, AWaitHasADeadlineAndCanBeCancelled) {
  expect_error(decode->follow(named(7), 0, client::within(std::chrono::milliseconds(30))), errc::deadline);
  auto waits = follow(7);
  EXPECT_TRUE(waits.cancel(patiently()).value());
  expect_error(waits.wait(patiently()), errc::cancelled);
}

TEST_F(Follow, ANameIsOfOneAnnouncementAtATime) {
  auto announced = announce(prefill, 1, chain);
  EXPECT_TRUE(waits(prefill, announced));
  auto other = chain_of(2, 2);
  auto again = announce(worker, 1, other);
  expect_error(again.wait(patiently()), errc::bad_request);
  EXPECT_TRUE(waits(prefill, announced));
  auto elsewhere = announce(worker, 2, other);
  EXPECT_TRUE(waits(worker, elsewhere));
}

TEST_F(Follow, AShutdownDoesNotWaitForThem) {
  auto announced = announce(prefill, 1, chain);
  auto all = follow(1), never = follow(2);
  EXPECT_TRUE(waits(decode, all));
  EXPECT_TRUE(waits(prefill, announced));
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_FALSE(never.wait(patiently()));
  EXPECT_FALSE(announced.wait(patiently()));
}

} // namespace follow_test
} // namespace terrace::e2e
