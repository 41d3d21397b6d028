// Events as routers for vLLM read them: a real subscriber of ZeroMQ, and one that asks for what it missed.
#include "router_index.hpp"
#include "workload.hpp"

#include <sys/prctl.h>

#include <zmq.hpp>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <thread>

namespace terrace::e2e {
namespace {

/// `terrace events --zmq-pub`, ended at the end of its scope.
class publishing_command {
 public:
  publishing_command(const std::string& socket, const std::string& publish, const std::string& replay,
                     const std::string& form) {
    auto command = program("TERRACE");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execl(command.c_str(), command.c_str(), "events", "--socket", socket.c_str(), "--zmq-pub",
              publish.c_str(), "--zmq-replay", replay.c_str(), "--zmq-topic", "kv", "--zmq-form",
              form.c_str(), "--block-size", "16", nullptr);
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

  // The subscription reaches the publisher at some time; what is stored until then is missed.
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

  // All from the first one on.
  router_index known(std::string(GetParam()) == "map");
  uint64_t zero = 0, expected = 0;
  asking.send(zmq::message_t(), zmq::send_flags::sndmore);
  asking.send(zmq::buffer(&zero, sizeof zero), zmq::send_flags::none);
  while (true) {
    auto frames = receive(asking);
    ASSERT_EQ(frames.size(), 4u); // an empty one first
    if (number_in(frames[2]) == UINT64_MAX)
      break;
    EXPECT_EQ(frames[1].to_string(), "kv");
    EXPECT_EQ(number_in(frames[2]), expected++);
    EXPECT_EQ(known.take(frames[3].to_string()), "");
  }
  EXPECT_GT(expected, first_live);
  EXPECT_EQ(known.begins, 1);

  // And on from there, by the numbers.
  client.store(chain_of(1000, 12)); // evicts
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
