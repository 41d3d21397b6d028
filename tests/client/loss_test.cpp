// The client's state after the daemon has gone or broken the protocol.
#include "scripted_daemon.hpp"

#include <algorithm>
#include <functional>
#include <future>

#include <sys/epoll.h>

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

namespace {

void with_client_of(script rest, const std::function<void(connection&, const space&)>& act) {
  scripted_daemon daemon([&](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    rest(client);
  });
  auto connected = daemon.connect();
  auto opened = connected.open_space(some_space());
  ASSERT_FINE(opened);
  act(connected, *opened);
}

result<lookup_result> lookup(connection& connected, const space& in) {
  static const auto digests = some_digests(2);
  return connected.lookup({.in = in, .what = prefix::of_digests(digests)});
}

/// The daemon does `rest` after it has received one lookup, which then fails with `gone` and the reason
/// `why`.
void expect_gone(script rest, const std::string& why) {
  with_client_of(rest, [&](connection& connected, const space& in) {
    EXPECT_FAILS(lookup(connected, in), errc::gone, why);
    EXPECT_FALSE(connected.alive());
    EXPECT_FAILS(lookup(connected, in), errc::gone, why);
  });
}

/// The daemon has opened a space, done `last` and closed the connection, and the client has not noticed yet.
void after_the_daemon_closed(script last, const std::function<void(connection&, const space&)>& act) {
  std::promise<void> closed;
  scripted_daemon daemon([&](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    last(client);
    client.close();
    closed.set_value();
  });
  auto connected = daemon.connect();
  auto opened = connected.open_space(some_space());
  ASSERT_FINE(opened);
  closed.get_future().wait();
  act(connected, *opened);
}

} // namespace

TEST(Loss, EndOfFileIsGone) {
  expect_gone([](peer& client) { client.receive(); }, "it closed the connection");
}

TEST(Loss, EndOfFileInTheMiddleOfAFrameSaysSo) {
  expect_gone(
      [](peer& client) {
        auto asked = client.receive();
        auto frame = client.frame(protocol::answer_to(kind::lookup), asked.id,
                                  [](body_builder& body) { return wire::CreateLookupAnswer(body); });
        client.send(std::span(frame).first(frame.size() - 4));
      },
      "in the middle of a frame");
}

TEST(Loss, EveryOpenTicketIsGoneAtOnce) {
  with_client_of([](peer& client) { client.receive(); },
                 [](connection& connected, const space& in) {
                   auto digests = some_digests(2);
                   auto first = connected.async().lookup({.in = in, .what = prefix::of_digests(digests)});
                   auto second = connected.async().lookup({.in = in, .what = prefix::of_digests(digests)});
                   ASSERT_FINE(first);
                   EXPECT_FAILS(first->wait(), errc::gone, "the daemon is gone");
                   if (second) {
                     EXPECT_TRUE(second->ready());
                     EXPECT_FAILS(second->wait(), errc::gone, "the daemon is gone");
                   }
                 });
}

TEST(Loss, AnEventLoopHearsOfALossThatACallNoticed) {
  after_the_daemon_closed([](peer&) {},
                          [](connection& connected, const space& in) {
                            unique_fd loop(::epoll_create1(EPOLL_CLOEXEC));
                            epoll_event watched{.events = EPOLLIN, .data = {.u32 = 7}};
                            ASSERT_EQ(
                                ::epoll_ctl(loop.get(), EPOLL_CTL_ADD, connected.descriptor(), &watched), 0);
                            EXPECT_FAILS(lookup(connected, in), errc::gone, "the daemon is gone");
                            epoll_event heard{};
                            ASSERT_EQ(::epoll_wait(loop.get(), &heard, 1, 0), 1);
                            EXPECT_EQ(heard.data.u32, 7U);
                            EXPECT_TRUE(heard.events & EPOLLIN);
                          });
}

TEST(Loss, PollNoticesALossWithNothingInFlight) {
  after_the_daemon_closed([](peer&) {},
                          [](connection& connected, const space&) {
                            EXPECT_TRUE(connected.alive());
                            EXPECT_FAILS(connected.poll({}), errc::gone, "it closed the connection");
                            EXPECT_FALSE(connected.alive());
                          });
}

TEST(Loss, AnswersThatCameBeforeTheEndAreGiven) {
  with_client_of(
      [](peer& client) {
        auto first = client.receive();
        client.receive();
        client.answer_lookup(first, 2);
      },
      [](connection& connected, const space& in) {
        auto digests = some_digests(2);
        auto first = connected.async().lookup({.in = in, .what = prefix::of_digests(digests)});
        auto second = connected.async().lookup({.in = in, .what = prefix::of_digests(digests)});
        EXPECT_FAILS(second->wait(), errc::gone, "closed");
        auto found = first->wait();
        ASSERT_FINE(found);
        EXPECT_EQ(found->found_chunks, 2U);
      });
}

TEST(Loss, TheDaemonsLastWordIsTheReason) {
  expect_gone(
      [](peer& client) {
        client.receive();
        client.refuse(0, errc::bad_request, "expected a frame length that is a multiple of 8");
      },
      "ended the connection: expected a frame length");
}

TEST(Loss, TheLastWordIsFoundEvenWhenSendingFails) {
  after_the_daemon_closed(
      [](peer& client) { client.refuse(0, errc::denied, "the operator evicted this client"); },
      [](connection& connected, const space& in) {
        EXPECT_FAILS(lookup(connected, in), errc::gone, "the operator evicted this client");
      });
}

TEST(Misbehaviour, AnAnswerToNothingEndsTheConnection) {
  expect_gone(
      [](peer& client) {
        auto asked = client.receive();
        asked.id += 12345;
        client.answer_lookup(asked, 1);
        client.drain();
      },
      "which was not in flight");
}

TEST(Misbehaviour, ASecondAnswerEndsTheConnection) {
  with_client_of(
      [](peer& client) {
        auto asked = client.receive();
        client.answer_lookup(asked, 1);
        client.answer_lookup(asked, 1);
        client.drain();
      },
      [](connection& connected, const space& in) {
        ASSERT_FINE(lookup(connected, in));
        EXPECT_FAILS(lookup(connected, in), errc::gone, "which was not in flight");
      });
}

TEST(Misbehaviour, AnAnswerOfTheWrongKindEndsTheConnection) {
  expect_gone(
      [](peer& client) {
        auto asked = client.receive();
        asked.kind = kind::status;
        client.answer(asked, [](body_builder& body) { return wire::CreateReleaseAnswer(body); });
        client.drain();
      },
      "expected an answer to lookup, got an answer to status");
}

TEST(Misbehaviour, ARequestFromTheDaemonEndsTheConnection) {
  expect_gone(
      [](peer& client) {
        auto asked = client.receive();
        client.send(client.frame(kind::lookup, asked.id,
                                 [](body_builder& body) { return wire::CreateStatus(body); }));
        client.drain();
      },
      "expected the kind of an answer");
}

TEST(Misbehaviour, AMalformedBodyEndsTheConnection) {
  expect_gone(
      [](peer& client) {
        auto asked = client.receive();
        std::vector<uint8_t> bytes(48, 0xff);
        auto header = protocol::write_header({48, protocol::answer_to(kind::lookup), 0, asked.id});
        std::copy(header.begin(), header.end(), bytes.begin());
        client.send(bytes);
        client.drain();
      },
      "well-formed FlatBuffer");
}

TEST(Misbehaviour, AnAnswerOutOfBoundsEndsTheConnection) {
  expect_gone(
      [](peer& client) {
        auto asked = client.receive();
        client.answer(asked, [](body_builder& body) { return wire::CreateLookupAnswer(body, 5, 5, 0, 0); });
        client.drain();
      },
      "one tier a found chunk");
}
