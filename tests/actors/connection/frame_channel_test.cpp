#include "actors/connection/frame_channel.hpp"
#include "protocol/frame_builder.hpp"
#include "support/actor_fixture.hpp"
#include "support/runtime_fixture.hpp"

#include <sys/socket.h>

#include <string>
#include <vector>

namespace terrace {
namespace {

using runtime::io_code;

struct sender_state {
  std::vector<runtime::io_done> seen;
};
using sender_actor = caf::stateful_actor<sender_state, runtime::homed_actor>;
using seen_pointer = std::shared_ptr<std::vector<runtime::io_done>>;

caf::behavior remembers(sender_actor*, seen_pointer seen) {
  return {[seen](const runtime::io_done& done) { seen->push_back(done); }};
}

/// A channel whose completions are passed on by hand, as a connection does.
class FrameChannel : public test::actor_fixture {
 public:
  ~FrameChannel() override { channel.reset(); }

  /// A frame with an error of so many bytes, at least.
  std::string queue(uint64_t request, size_t bytes = 10) {
    outgoing_frame frame{channel->builder(), {}, request};
    protocol::write_error(*frame.builder, request, {errc::busy, std::string(bytes, 'x')});
    std::string copy(reinterpret_cast<const char*>(frame.builder->bytes().data()),
                     frame.builder->bytes().size());
    channel->send(std::move(frame), true);
    return copy;
  }

  /// Sends the line; the requests that count as answered.
  std::vector<uint64_t> send_line(bool last = false) {
    std::vector<uint64_t> done;
    channel->send_line(done, last);
    return done;
  }

  /// Passes on one completion of a send.
  std::vector<uint64_t> complete() {
    settle();
    EXPECT_FALSE(seen->empty());
    std::vector<uint64_t> done;
    if (!seen->empty()) {
      open = channel->sent(seen->front().result, done);
      seen->erase(seen->begin());
    }
    return done;
  }

  std::string received() {
    std::string all(1 << 22, ' ');
    size_t got = 0;
    for (ssize_t n = 0; (n = ::recv(pair.fds[0], all.data() + got, all.size() - got, MSG_DONTWAIT)) > 0;)
      got += static_cast<size_t>(n);
    all.resize(got);
    return all;
  }

  using answered = std::vector<uint64_t>;

  test::socket_pair pair;
  seen_pointer seen = std::make_shared<std::vector<runtime::io_done>>();
  caf::actor owner = runtime::spawn_homed(sys, home(), remembers, seen);
  std::unique_ptr<frame_channel> channel = std::make_unique<frame_channel>(
      unique_fd(std::exchange(pair.fds[1], -1)), port(), caf::actor_cast<caf::strong_actor_ptr>(owner));
  bool open = true;
};

/// Of what is behind the first, nothing would be sent if the channel were shut when that counts as sent.
TEST_F(FrameChannel, OfTheLastLineNothingCountsAsSentBeforeItIs) {
  auto expected = queue(1);
  expected += queue(2, 70 << 10);
  expected += queue(0);
  EXPECT_EQ(send_line(true), answered{});
  EXPECT_TRUE(channel->sending());
  EXPECT_EQ(complete(), answered{1});
  EXPECT_TRUE(channel->waits());
  EXPECT_EQ(send_line(true), answered{});
  EXPECT_EQ(complete(), answered{2});
  EXPECT_TRUE(channel->waits()) << "it is longer than what is joined";
  auto got = received(); // the socket is full
  EXPECT_EQ(send_line(true), answered{});
  EXPECT_EQ(complete(), answered{0});
  EXPECT_FALSE(channel->waits());
  EXPECT_EQ(got + received(), expected);
}

TEST_F(FrameChannel, SmallAnswersOfATurnLeaveTogetherAndCountAsSent) {
  auto expected = queue(1);
  expected += queue(2);
  EXPECT_TRUE(channel->waits());
  EXPECT_EQ(send_line(), (answered{1, 2}));
  EXPECT_FALSE(channel->waits());
  EXPECT_FALSE(channel->sending());
  settle();
  EXPECT_TRUE(seen->empty());
  EXPECT_EQ(received(), expected);
  EXPECT_EQ(channel->sent_bytes, expected.size());
  EXPECT_EQ(ring.started(io_code::send), 1u);
}

TEST_F(FrameChannel, WhatFollowsBeforeTheKernelHasThemComesBehindThem) {
  auto expected = queue(1);
  EXPECT_EQ(send_line(), answered{1});
  expected += queue(2);
  EXPECT_TRUE(channel->waits());
  EXPECT_EQ(send_line(), answered{});
  EXPECT_TRUE(channel->sending()) << "its end is told";
  EXPECT_EQ(complete(), answered{}) << "1 was told before";
  EXPECT_TRUE(channel->waits());
  EXPECT_EQ(send_line(), answered{2});
  settle();
  EXPECT_TRUE(seen->empty());
  EXPECT_EQ(received(), expected);
  EXPECT_EQ(channel->sent_bytes, expected.size());
}

TEST_F(FrameChannel, ALastFrameComesBehindThemToo) {
  auto expected = queue(1);
  EXPECT_EQ(send_line(), answered{1});
  outgoing_frame last{channel->builder(), {}, 0};
  protocol::write_error(*last.builder, 0, {errc::busy, "ends"});
  expected.append(reinterpret_cast<const char*>(last.builder->bytes().data()), last.builder->bytes().size());
  channel->send(std::move(last));
  EXPECT_TRUE(channel->sending());
  complete();
  EXPECT_EQ(send_line(), answered{}) << "whoever ends the connection has to know that it was sent";
  EXPECT_TRUE(channel->sending());
  EXPECT_EQ(complete(), answered{0});
  EXPECT_FALSE(channel->sending());
  EXPECT_EQ(received(), expected);
}

TEST_F(FrameChannel, WhatTheSocketDoesNotTakeFollowsBeforeAnythingElse) {
  auto expected = queue(1, 1000);
  ring.shorten(io_code::sendmsg, 100);
  EXPECT_EQ(send_line(), answered{1});
  settle();
  ASSERT_EQ(seen->size(), 1u);
  EXPECT_EQ(seen->front().result, 100);
  expected += queue(2);
  EXPECT_EQ(send_line(), answered{}) << "the rest of the first one is not sent yet";
  ring.shorten(io_code::sendmsg, 0);
  EXPECT_EQ(complete(), answered{});
  EXPECT_TRUE(channel->sending());
  EXPECT_EQ(complete(), answered{});
  EXPECT_EQ(send_line(), answered{2});
  settle();
  EXPECT_EQ(received(), expected);
  EXPECT_EQ(channel->sent_bytes, expected.size()) << "counted once";
}

TEST_F(FrameChannel, AFullSocketIsWaitedFor) {
  auto expected = queue(1);
  ring.send_at_once(false);
  EXPECT_EQ(send_line(), answered{1});
  EXPECT_EQ(complete(), answered{});
  EXPECT_TRUE(channel->sending());
  EXPECT_EQ(complete(), answered{});
  EXPECT_FALSE(channel->sending());
  EXPECT_TRUE(open);
  EXPECT_EQ(received(), expected);
}

TEST_F(FrameChannel, ThatIsBrokenSaysSo) {
  pair.close_one(0);
  queue(1);
  EXPECT_EQ(send_line(), answered{1});
  EXPECT_EQ(complete(), answered{});
  EXPECT_FALSE(open);
}

TEST_F(FrameChannel, ALargeAnswerCountsAsSentWhenTheSocketHasIt) {
  auto expected = queue(1, 20'000);
  EXPECT_EQ(send_line(), answered{});
  EXPECT_TRUE(channel->sending());
  EXPECT_EQ(complete(), answered{1});
  EXPECT_EQ(received(), expected);
  EXPECT_EQ(channel->sent_bytes, expected.size());
  EXPECT_EQ(ring.started(io_code::send), 0u);
}

TEST_F(FrameChannel, WhatIsKeptWhileItSendsOutlivesTheFrames) {
  auto kept = std::make_shared<int>();
  channel->keep_while_sending(kept);
  EXPECT_EQ(kept.use_count(), 1) << "nothing is being sent";
  queue(1, 20'000);
  send_line();
  channel->keep_while_sending(kept);
  channel->shut();
  EXPECT_EQ(kept.use_count(), 2);
  complete();
  EXPECT_FALSE(open);
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(FrameChannel, WhatIsKeptWhileItSendsOutlivesTheChannel) {
  auto kept = std::make_shared<int>();
  queue(1, 20'000);
  send_line();
  channel->keep_while_sending(kept);
  channel.reset();
  EXPECT_EQ(kept.use_count(), 2) << "the kernel may still read the frame";
  stop(owner);
  settle();
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(FrameChannel, ThatIsShutSendsNothingMore) {
  queue(1);
  channel->shut();
  EXPECT_FALSE(channel->waits());
  EXPECT_EQ(send_line(), answered{});
  EXPECT_EQ(ring.in_flight(), 0u);
}

TEST_F(FrameChannel, ThatEndsLeavesItsBytesToTheKernel) {
  queue(1);
  EXPECT_EQ(send_line(), answered{1});
  channel.reset();
  stop(owner);
  EXPECT_TRUE(seen->empty());
  EXPECT_EQ(ring.in_flight(), 0u);
}

} // namespace
} // namespace terrace
