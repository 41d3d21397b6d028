// Events as routers for vLLM read them: a real subscriber of ZeroMQ, and one that asks for what it missed.
#include "remote_fixture.hpp"
#include "router_index.hpp"
#include "workload.hpp"

#include "tests/support/seed.hpp"

#include <sys/prctl.h>

#include <zmq.hpp>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <set>
#include <thread>

namespace terrace::e2e {
namespace {

/// `terrace events --zmq-pub`, ended at the end of its scope.
class publishing_command {
 public:
  publishing_command(const std::string& socket, const std::string& publish, const std::string& replay,
                     const std::string& form, const char* option = nullptr) {
    auto command = program("TERRACE");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execl(command.c_str(), command.c_str(), "events", "--socket", socket.c_str(), "--zmq-pub",
              publish.c_str(), "--zmq-replay", replay.c_str(), "--zmq-topic", "kv", "--zmq-form",
              form.c_str(), "--block-size", "16", option, nullptr);
      ::_exit(127);
    }
  }
  ~publishing_command() {
    ::kill(pid_, SIGINT);
    EXPECT_EQ(test::reap(pid_), 0);
  }
  publishing_command(const publishing_command&) = delete;
  publishing_command& operator=(const publishing_command&) = delete;

 private:
  pid_t pid_ = -1;
};

uint64_t number_in(const zmq::message_t& frame) {
  uint64_t number = 0;
  EXPECT_EQ(frame.size(), 8u);
  for (size_t i = 0; i < frame.size(); ++i)
    number = number << 8 | static_cast<const uint8_t*>(frame.data())[i];
  return number;
}

std::vector<zmq::message_t> receive(zmq::socket_t& from) {
  std::vector<zmq::message_t> frames;
  do {
    frames.emplace_back();
    if (!from.recv(frames.back()))
      return {};
  } while (frames.back().more());
  return frames;
}

/// Updates a router that asks for all messages from the first one on.
void ask_for_all(zmq::socket_t& asking, router_index& known) {
  uint64_t zero = 0;
  asking.send(zmq::message_t(), zmq::send_flags::sndmore);
  asking.send(zmq::buffer(&zero, sizeof zero), zmq::send_flags::none);
  while (true) {
    auto frames = receive(asking);
    ASSERT_EQ(frames.size(), 4u); // an empty frame comes first
    if (number_in(frames[2]) == UINT64_MAX)
      return;
    EXPECT_EQ(known.take(frames[3].to_string()), "");
  }
}

/// A publisher of a daemon, and a router that asks it for everything whenever it is called.
class router_of {
 public:
  explicit router_of(const daemon_under_test& daemon, const char* option = nullptr)
      : asking_(context_, zmq::socket_type::dealer),
        command_(daemon.socket(), "ipc://" + std::string(folder_ / "pub"),
                 "ipc://" + std::string(folder_ / "replay"), "map", option) {
    asking_.set(zmq::sockopt::rcvtimeo, patience_ms);
    asking_.set(zmq::sockopt::linger, 0);
    asking_.connect("ipc://" + std::string(folder_ / "replay"));
  }
  router_index operator()() {
    router_index known(true);
    ask_for_all(asking_, known);
    return known;
  }

 private:
  temporary_folder folder_{"/tmp"};
  zmq::context_t context_;
  zmq::socket_t asking_;
  publishing_command command_;
};

std::string hash_of(const digest& chunk, size_t width = digest::max_size) {
  return {reinterpret_cast<const char*>(chunk.bytes.data()), width};
}

struct EventsOverZeroMq : ::testing::TestWithParam<const char*> {};

TEST_P(EventsOverZeroMq, ARouterKnowsWhatTheTiersHave) {
  if (test::sanitized("thread"))
    GTEST_SKIP() << "ThreadSanitizer does not see how ZeroMQ's own threads synchronize";
  temporary_folder folder{"/tmp"};
  std::string publish = "ipc://" + std::string(folder / "pub"),
              replay = "ipc://" + std::string(folder / "replay");
  daemon_under_test daemon({.host_bytes = 16 * mebibyte});
  tester client(daemon.socket());
  client.store(chain_of(1, 5));

  zmq::context_t context;
  zmq::socket_t subscriber(context, zmq::socket_type::sub), asking(context, zmq::socket_type::dealer);
  subscriber.set(zmq::sockopt::rcvtimeo, 100);
  subscriber.set(zmq::sockopt::subscribe, "kv");
  subscriber.connect(publish);
  asking.set(zmq::sockopt::rcvtimeo, patience_ms);
  asking.connect(replay);
  publishing_command command(daemon.socket(), publish, replay, GetParam());

  // The subscription reaches the publisher at some time; blocks stored until then are missed.
  std::vector<zmq::message_t> live;
  uint64_t seed = 2;
  ASSERT_TRUE(eventually([&] {
    client.store(chain_of(seed++, 1));
    live = receive(subscriber);
    return !live.empty();
  }));
  ASSERT_EQ(live.size(), 3u);
  EXPECT_EQ(live[0].to_string(), "kv");
  uint64_t first_live = number_in(live[1]);

  // Asks for all messages from the first one on.
  router_index known(std::string(GetParam()) == "map");
  uint64_t zero = 0, expected = 0;
  asking.send(zmq::message_t(), zmq::send_flags::sndmore);
  asking.send(zmq::buffer(&zero, sizeof zero), zmq::send_flags::none);
  while (true) {
    auto frames = receive(asking);
    ASSERT_EQ(frames.size(), 4u); // an empty frame comes first
    if (number_in(frames[2]) == UINT64_MAX)
      break;
    EXPECT_EQ(frames[1].to_string(), "kv");
    EXPECT_EQ(number_in(frames[2]), expected++);
    EXPECT_EQ(known.take(frames[3].to_string()), "");
  }
  EXPECT_GT(expected, first_live);
  EXPECT_EQ(known.begins, 1);

  // Continues from there, by the numbers.
  client.store(chain_of(1000, 12)); // evicts objects
  ASSERT_TRUE(eventually([&] {
    for (auto frames = receive(subscriber); !frames.empty(); frames = receive(subscriber)) {
      if (number_in(frames[1]) < expected)
        continue;
      EXPECT_EQ(number_in(frames[1]), expected++);
      EXPECT_EQ(known.take(frames[2].to_string()), "");
    }
    return known.blocks("CPU") == client.tier("host").objects;
  }));
  EXPECT_GT(known.blocks("CPU"), 5u);
  EXPECT_EQ(known.blocks("STORAGE"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Forms, EventsOverZeroMq, ::testing::Values("map", "array"),
                         [](const auto& form) { return std::string(form.param); });

/// Routers and publishers for tests that need two of them.
struct PublishedBlocks : ::testing::Test {
  void SetUp() override {
    if (test::sanitized("thread"))
      GTEST_SKIP() << "ThreadSanitizer does not see how ZeroMQ's own threads synchronize";
  }
  static client::space_spec of_two_ranks(uint32_t rank) {
    auto spec = test_space();
    spec.world_size = 2;
    spec.rank = rank;
    return spec;
  }
};

TEST_F(PublishedBlocks, HaveTheHashesThatTheEngineSent) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  constexpr uint8_t width = 16;
  auto chain = chain_of(1, 3);
  std::vector<uint8_t> sent;
  for (const digest& chunk : chain)
    sent.insert(sent.end(), chunk.bytes.begin(), chunk.bytes.begin() + width);
  auto request = client.store_of(chain);
  request.what = client::prefix::of_digests(sent, width);
  ASSERT_TRUE(client->store(request, patiently()));
  router_of router(daemon), integers(daemon, "--integer-hashes");
  ASSERT_TRUE(eventually([&] { return router().blocks("CPU") == 3 && integers().blocks("CPU") == 3; }));
  for (const digest& chunk : chain) {
    EXPECT_TRUE(router().has("CPU", hash_of(chunk, width)));
    uint64_t last = 0;
    for (size_t i = width - 8; i < width; ++i)
      last = last << 8 | chunk.bytes[i];
    EXPECT_TRUE(integers().has("CPU", std::to_string(last)));
  }
}

TEST_F(PublishedBlocks, AreThereWhenAllRanksHaveStored) {
  daemon_under_test daemon;
  tester first(daemon.socket(), "rank 0", 8 * object_bytes, of_two_ranks(0));
  tester second(daemon.socket(), "rank 1", 8 * object_bytes, of_two_ranks(1));
  auto before = chain_of(1, 2), half = chain_of(2, 2), whole = chain_of(3, 2);
  first.store(before);
  router_of router(daemon);
  first.store(half);
  first.store(whole);
  second.store(whole);
  ASSERT_TRUE(eventually([&] { return router().has("CPU", hash_of(whole[1])); }));
  EXPECT_EQ(router().blocks("CPU"), 2u); // the router knows everything before that by now
  EXPECT_EQ(first.lookup(half).found_chunks, 0u);

  second.store(half);
  second.store(before); // the snapshot contained its first rank
  ASSERT_TRUE(eventually([&] { return router().blocks("CPU") == 6; }));
  ASSERT_TRUE(
      first->admin().evict({.in = first.space(), .what = client::prefix::of_digests(half)}, patiently()));
  ASSERT_TRUE(eventually([&] { return router().blocks("CPU") == 4; }));
  EXPECT_FALSE(router().has("CPU", hash_of(half[0])));
}

TEST_F(PublishedBlocks, AreWhatEnginesFind) {
  daemon_under_test daemon({.host_bytes = 16 * mebibyte});
  tester ranks[] = {tester(daemon.socket(), "rank 0", 8 * object_bytes, of_two_ranks(0)),
                    tester(daemon.socket(), "rank 1", 8 * object_bytes, of_two_ranks(1))};
  router_of router(daemon);
  auto chunks = chain_of(7, 20); // each chunk is a prompt of its own
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round)
    ranks[random() % 2].store({chunks[random() % chunks.size()]}); // evicts one rank's object or the other's
  size_t halves = ranks[0].tier("host").objects;
  auto agree = [&] {
    auto known = router();
    return std::all_of(chunks.begin(), chunks.end(), [&](const digest& chunk) {
      return known.has("CPU", hash_of(chunk)) == (ranks[0].lookup({chunk}).found_chunks == 1);
    });
  };
  EXPECT_TRUE(eventually(agree));
  EXPECT_LT(2 * router().blocks("CPU"), halves) << "nothing was there for one rank only";
}

TEST_F(PublishedBlocks, OfAnEarlierDaemonAreToldWhenTheirSpaceIsOpened) {
  daemon_under_test daemon({.disk_bytes = 96 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 3);
  tester(daemon.socket()).store(chain);
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("3 objects found"));
  router_of router(daemon);
  ASSERT_TRUE(eventually([&] { return router().begins != 0; }));
  EXPECT_EQ(router().blocks("STORAGE"), 0u); // the number of objects per block is not known yet
  tester client(daemon.socket());
  ASSERT_TRUE(eventually([&] { return router().blocks("STORAGE") == 3; }));
  EXPECT_TRUE(router().has("STORAGE", hash_of(chain[2])));
}

struct PublishedRemoteBlocks : RemoteStores {};

TEST_F(PublishedRemoteBlocks, AreToldIfAskedForAndThenAreRemote) {
  if (test::sanitized("thread"))
    GTEST_SKIP() << "ThreadSanitizer does not see how ZeroMQ's own threads synchronize";
  start_store();
  remote_machine machine({.more = section()});
  machine.await_store();
  const auto before = chain_of(1, 3), after = chain_of(2, 2), last = chain_of(3, 1);
  machine.client->store(before);
  ASSERT_TRUE(machine.finds_all(before, on_remote));
  router_of own(machine.daemon), everything(machine.daemon, "--zmq-remote");
  machine.client->store(after);
  ASSERT_TRUE(machine.finds_all(after, on_remote));
  ASSERT_TRUE(eventually([&] { return everything().blocks("REMOTE") == 5; }))
      << "those of the snapshot as well";
  EXPECT_EQ(everything().blocks("CPU"), 5U);
  machine.client->store(last);
  ASSERT_TRUE(eventually([&] { return own().has("CPU", hash_of(last[0])); })) << "it knows all before by now";
  EXPECT_EQ(own().blocks("CPU"), 6U);
  EXPECT_EQ(own().blocks("REMOTE"), 0U);
  EXPECT_EQ(own().blocks("STORAGE"), 0U);
}

TEST(EventsOverZeroMqCommand, RemoteBlocksNeedAPublisherAndEventsThatSayTheyAreRemote) {
  daemon_under_test daemon;
  const auto told = [&](std::vector<std::string> options) {
    options.insert(options.begin(),
                   {program("TERRACE"), "events", "--socket", daemon.socket(), "--zmq-remote"});
    return run(options);
  };
  const auto alone = told({});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_NE(alone.err.find("--zmq-pub"), std::string::npos) << alone.err;
  const auto arrays = told({"--zmq-pub", "ipc:///tmp/x", "--zmq-form", "array"});
  EXPECT_EQ(arrays.exit_code, 2);
  EXPECT_NE(arrays.err.find("--zmq-form map"), std::string::npos) << arrays.err;
}

TEST(EventsOverZeroMqCommand, AnEndpointThatCannotBeBoundIsNamed) {
  if (test::sanitized("thread"))
    GTEST_SKIP() << "ThreadSanitizer does not see how ZeroMQ's own threads synchronize";
  daemon_under_test daemon;
  auto ended = run({program("TERRACE"), "events", "--socket", daemon.socket(), "--zmq-pub", "nowhere"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.err.find("binding nowhere"), std::string::npos) << ended.err;
  auto alone =
      run({program("TERRACE"), "events", "--socket", daemon.socket(), "--zmq-replay", "ipc:///tmp/x"});
  EXPECT_EQ(alone.exit_code, 2);
}

} // namespace
} // namespace terrace::e2e
