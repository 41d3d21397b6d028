// One process looks up; others of its trust group wait for that lookup, load under its lease, or cancel it.
#include "tests/support/raw_client.hpp"
#include "workload.hpp"

namespace terrace::e2e {
namespace {

lookup_id named(uint8_t number) {
  lookup_id id;
  id.bytes.fill(number);
  return id;
}

struct NamedLookup : ::testing::Test {
  void SetUp() override { ASSERT_EQ(scheduler.store(chain), 4U); }

  result<client::lookup_result> look_up(uint8_t number, const std::vector<digest>& what, bool lease = true) {
    auto request = scheduler.lookup_of(what, lease);
    request.id = named(number);
    return scheduler->lookup(request, patiently());
  }
  /// Waits until the daemon has processed the connection's messages so far.
  void settle() { scheduler.status(); }

  daemon_under_test daemon;
  tester scheduler{daemon.socket(), "scheduler"};
  tester worker{daemon.socket(), "worker"};
  std::vector<digest> chain = chain_of(1, 4);
};

test::frame_bytes open_space_frame() {
  return test::frame_with(protocol::kind::open_space, 2, [](auto& body) {
    auto kv = wire::CreatePoolDirect(body, "kv", object_bytes);
    auto pools = body.CreateVector(&kv, 1);
    auto model = body.CreateString("test");
    auto dtype = body.CreateString("u8");
    auto layout = body.CreateString("opaque");
    wire::OpenSpaceBuilder open(body);
    open.add_model(model);
    open.add_dtype(dtype);
    open.add_layout(layout);
    open.add_chunk_tokens(space_chunk_tokens);
    open.add_pools(pools);
    return open.Finish();
  });
}

/// Returns a lookup in the space with number 1, of a prompt of this many tokens.
test::frame_bytes lookup_frame(const lookup_id& id, size_t tokens) {
  return test::frame_with(protocol::kind::lookup, 3, [&](auto& body) {
    auto list = body.CreateVector(std::vector<uint32_t>(tokens, 7));
    wire::PrefixBuilder prefix(body);
    prefix.add_tokens(list);
    auto what = prefix.Finish();
    auto name = body.CreateVector(id.bytes.data(), id.bytes.size());
    wire::LookupBuilder lookup(body);
    lookup.add_space(1);
    lookup.add_prefix(what);
    lookup.add_lookup_id(name);
    return lookup.Finish();
  });
}

void expect_error(const result<client::lookup_result>& answer, errc code) {
  ASSERT_FALSE(answer);
  EXPECT_EQ(to_string(answer.error().code), to_string(code)) << answer.error().text;
}

TEST_F(NamedLookup, AnotherConnectionHearsItsAnswerAndLoadsUnderItsLease) {
  auto found = look_up(1, chain_of(1, 6));
  ASSERT_TRUE(found) << found.error().text;
  auto heard = worker->await_lookup(named(1), patiently());
  ASSERT_TRUE(heard) << heard.error().text;
  EXPECT_EQ(heard->requested_chunks, 6U);
  EXPECT_EQ(heard->found_chunks, 4U);
  EXPECT_EQ(heard->found_tokens, found->found_tokens);
  EXPECT_EQ(heard->usable_tokens, found->usable_tokens);
  EXPECT_EQ(heard->tiers, found->tiers);
  EXPECT_EQ(heard->held.id(), found->held.id());
  auto load = worker.load_of(chain, {1, 3});
  load.what = {};
  load.lease = heard->held.id();
  auto loaded = worker->load(load, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 3U);
  EXPECT_EQ(loaded->first_token, space_chunk_tokens) << "chunk 1 begins there";
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(has_content(chain[i + 1], worker.piece(i)));
}

TEST_F(NamedLookup, WhoWaitsBeforeItBeginsHearsItToo) {
  auto waits = worker->async().await_lookup(named(1), patiently());
  ASSERT_TRUE(waits);
  EXPECT_EQ(worker.lookup(chain).found_chunks, 4U); // others are served meanwhile
  EXPECT_FALSE(waits->ready());
  auto found = look_up(1, chain);
  ASSERT_TRUE(found);
  auto heard = waits->wait(patiently());
  ASSERT_TRUE(heard) << heard.error().text;
  EXPECT_EQ(heard->found_chunks, 4U);
}

TEST_F(NamedLookup, TheLeaseEndsWithItsLastHolder) {
  auto found = look_up(1, chain);
  auto heard = worker->await_lookup(named(1), patiently());
  ASSERT_TRUE(found && heard);
  EXPECT_EQ(leased_objects(worker, 4), 4U);
  found->held.release();
  settle();
  EXPECT_EQ(leased_objects(worker, 4), 4U) << "the worker holds it";
  auto places = worker->read_lease(heard->held.id(), {2, 1}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  EXPECT_EQ(places->first_token, 2 * space_chunk_tokens);
  EXPECT_TRUE(has_content(chain[2], places->objects[0]));
  heard->held.release();
  EXPECT_EQ(leased_objects(worker, 0), 0U);
  expect_error(worker->await_lookup(named(1), patiently()), errc::gone);
}

TEST_F(NamedLookup, TheLeaseOutlivesTheConnectionThatLookedUp) {
  auto first = std::make_unique<tester>(daemon.socket(), "first");
  auto request = first->lookup_of(chain, true);
  request.id = named(9);
  auto found = (*first)->lookup(request, patiently());
  auto heard = worker->await_lookup(named(9), patiently());
  ASSERT_TRUE(found && heard);
  found = {};
  first.reset();
  EXPECT_EQ(worker.lookup(chain).found_chunks, 4U);
  auto places = worker->read_lease(heard->held.id(), {}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  EXPECT_TRUE(has_content(chain[3], places->objects[3]));
}

TEST_F(NamedLookup, AMissIsAnsweredAtOnceAndHoldsNothing) {
  auto found = look_up(1, chain_of(2, 4));
  ASSERT_TRUE(found);
  auto heard = worker->await_lookup(named(1), patiently());
  ASSERT_TRUE(heard) << heard.error().text;
  EXPECT_EQ(heard->requested_chunks, 4U);
  EXPECT_EQ(heard->found_chunks, 0U);
  EXPECT_FALSE(heard->held);
  EXPECT_EQ(leased_objects(worker, 0), 0U);
  EXPECT_FALSE(worker->cancel_lookup(named(1), patiently()).value());
}

TEST_F(NamedLookup, CancelledByAnotherItsLeaseEnds) {
  auto found = look_up(1, chain);
  ASSERT_TRUE(found);
  auto cancelled = worker->cancel_lookup(named(1), patiently());
  ASSERT_TRUE(cancelled) << cancelled.error().text;
  EXPECT_TRUE(*cancelled);
  settle(); // its owner has been told
  EXPECT_EQ(leased_objects(worker, 0), 0U);
  EXPECT_FALSE(scheduler->read_lease(found->held.id(), {}, patiently()));
  expect_error(worker->await_lookup(named(1), patiently()), errc::gone);
  EXPECT_FALSE(worker->cancel_lookup(named(1), patiently()).value());
}

TEST_F(NamedLookup, CancelledByAnotherWhatItsOwnerReadsInPlaceStays) {
  auto found = look_up(1, chain);
  ASSERT_TRUE(found);
  auto places = scheduler->read_lease(found->held.id(), {}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  ASSERT_TRUE(worker->cancel_lookup(named(1), patiently()).value());
  settle();
  EXPECT_EQ(leased_objects(worker, 4), 4U);
  EXPECT_TRUE(has_content(chain[3], places->objects[3]));
  found->held.release();
  settle();
  EXPECT_EQ(leased_objects(worker, 0), 0U);
}

TEST_F(NamedLookup, AWaitHasADeadlineAndCanBeCancelled) {
  expect_error(worker->await_lookup(named(7), client::within(std::chrono::milliseconds(30))), errc::deadline);
  auto waits = worker->async().await_lookup(named(7), patiently());
  ASSERT_TRUE(waits);
  EXPECT_TRUE(waits->cancel(patiently()).value());
  expect_error(waits->wait(patiently()), errc::cancelled);
}

TEST_F(NamedLookup, ARefusedLookupIsHeardAsGone) {
  auto waits = worker->async().await_lookup(named(1), patiently());
  auto request = scheduler.lookup_of(chain);
  request.id = named(1);
  std::vector<uint32_t> tokens(64, 1);
  request.what = client::prefix::of_tokens(tokens);
  request.what.parent = chain[0].bytes;
  request.what.parent_tokens = 5; // not a whole number of chunks
  EXPECT_FALSE(scheduler->lookup(request, patiently()));
  expect_error(waits->wait(patiently()), errc::gone);
}

TEST_F(NamedLookup, ALookupRefusedBeforeItBeginsIsGoneToo) {
  auto waits = worker->async().await_lookup(named(1), patiently());
  ASSERT_TRUE(waits);
  worker.status(); // the wait has begun
  auto request = scheduler.lookup_of(chain);
  request.id = named(1);
  request.tiers = 1U << 20; // there is no such tier
  EXPECT_FALSE(scheduler->lookup(request, patiently()));
  expect_error(waits->wait(patiently()), errc::gone);

  auto other = worker->async().await_lookup(named(2), patiently());
  ASSERT_TRUE(other);
  worker.status();
  test::raw_client stranger(daemon.socket()); // a client that has not opened the space
  ASSERT_TRUE(stranger.greet());
  stranger.send(lookup_frame(named(2), 1));
  EXPECT_EQ(stranger.receive()->code(), errc::not_found);
  expect_error(other->wait(patiently()), errc::gone);
}

TEST_F(NamedLookup, AConnectionThatEndsLeavesNoLookupBehind) {
  // The prompts are long: some connections end before their lookup begins, some while it hashes.
  for (uint8_t number = 1; number <= 64; ++number) {
    test::raw_client dying(daemon.socket());
    ASSERT_TRUE(dying.greet());
    dying.send(open_space_frame());
    ASSERT_FALSE(dying.receive()->is_error());
    dying.send(lookup_frame(named(number), number % 4 == 0 ? 500'000 : 16));
    dying.close();
  }
  for (uint8_t number = 1; number <= 64; ++number) {
    auto heard = worker->await_lookup(named(number), patiently());
    if (!heard) {
      EXPECT_EQ(to_string(heard.error().code), to_string(errc::gone)) << heard.error().text;
    }
    auto found = look_up(number, chain);
    EXPECT_TRUE(found) << found.error().text; // the id is free
  }
}

TEST(NamedLookups, OfAnotherTrustGroupAreUnknown) {
  daemon_options two;
  temporary_folder folder;
  std::string first = folder / "a.sock";
  std::string second = folder / "b.sock";
  two.listen = "[[listen]]\npath = \"" + first + "\"\ngroup = \"a\"\n[[listen]]\npath = \"" + second +
               "\"\ngroup = \"b\"\n";
  daemon_under_test daemon(two);
  tester mine(first);
  tester other(second);
  auto chain = chain_of(1, 1);
  mine.store(chain);
  auto request = mine.lookup_of(chain, true);
  request.id = named(1);
  auto found = mine->lookup(request, patiently());
  ASSERT_TRUE(found);
  EXPECT_FALSE(other->cancel_lookup(named(1), patiently()).value());
  expect_error(other->await_lookup(named(1), client::within(std::chrono::milliseconds(30))), errc::deadline);
  EXPECT_TRUE(mine->cancel_lookup(named(1), patiently()).value());
}

} // namespace
} // namespace terrace::e2e
