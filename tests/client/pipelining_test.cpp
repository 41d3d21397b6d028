#include "scripted_daemon.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <numeric>
#include <thread>

#include <pthread.h>

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

namespace {

/// A connection with one open space.
struct opened {
  explicit opened(scripted_daemon& daemon) : connected(daemon.connect()) {
    auto made = connected.open_space(some_space());
    EXPECT_TRUE(made);
    space = *made;
  }
  result<ticket<lookup_result>> submit(deadline until = {}) {
    return connected.async().lookup({.in = space, .what = prefix::of_digests(digests)}, until);
  }

  connection connected;
  client::space space;
  std::vector<digest> digests = some_digests(4);
};

script with_space(script rest, welcome_options options = {}) {
  return [=](peer& client) {
    client.welcome(options);
    client.answer_open_space(5);
    rest(client);
  };
}

} // namespace

TEST(Pipelining, AnswersMayComeInAnyOrder) {
  scripted_daemon daemon(with_space([](peer& client) {
    std::vector<request> asked;
    for (int i = 0; i < 5; ++i)
      asked.push_back(client.expect(kind::lookup));
    for (size_t i : {3U, 0U, 4U, 2U, 1U})
      client.answer_lookup(asked[i], static_cast<uint32_t>(i));
  }));
  opened client(daemon);
  std::vector<ticket<lookup_result>> tickets;
  for (int i = 0; i < 5; ++i)
    tickets.push_back(std::move(*client.submit()));
  for (size_t i = 0; i < 5; ++i) {
    auto found = tickets[i].wait();
    ASSERT_FINE(found);
    EXPECT_EQ(found->found_chunks, i);
    EXPECT_FALSE(tickets[i]);
  }
  EXPECT_FAILS(tickets[0].wait(), errc::bad_request, "empty one");
}

TEST(Pipelining, PollTakesInWhatHasComeAndTicketsTellTheyAreReady) {
  scripted_daemon daemon(with_space([](peer& client) {
    auto first = client.expect(kind::lookup);
    auto second = client.expect(kind::lookup);
    client.answer_lookup(second, 2);
    client.expect(kind::lookup); // the client has seen that the second is ready
    client.answer_lookup(first, 1);
    client.drain();
  }));
  opened client(daemon);
  auto first = client.submit();
  auto second = client.submit();
  ASSERT_EQ(client.connected.poll(within(std::chrono::minutes(1))), 1U);
  EXPECT_FALSE(first->ready());
  EXPECT_TRUE(second->ready());
  auto third = client.submit();
  EXPECT_EQ(second->wait()->found_chunks, 2U);
  EXPECT_EQ(first->wait()->found_chunks, 1U);
  EXPECT_EQ(client.connected.poll(std::chrono::steady_clock::now()), 0U) << "the third is never answered";
}

extern "C" void ignore_signal(int) {}

TEST(Pipelining, ASignalEndsAPollThatIsToReturnThen) {
  scripted_daemon daemon(with_space([](peer& client) {
    auto first = client.expect(kind::lookup);
    client.expect(kind::lookup); // the client's poll has ended without an answer
    client.answer_lookup(first, 1);
    client.drain();
  }));
  opened client(daemon);
  struct sigaction ignored {};
  ignored.sa_handler = ignore_signal;
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &ignored, &before), 0);
  std::atomic<bool> over = false;
  std::thread interrupter([&over, waiting = ::pthread_self()] {
    while (!over)
      ::pthread_kill(waiting, SIGUSR1);
  });
  auto first = client.submit();
  EXPECT_EQ(client.connected.poll({}, on_signal::returns), 0U);
  EXPECT_EQ(client.connected.poll(within(std::chrono::minutes(1)), on_signal::returns), 0U);
  EXPECT_FALSE(first->ready());
  auto second = client.submit();
  EXPECT_EQ(client.connected.poll({}), 1U) << "others go on in spite of signals";
  over = true;
  interrupter.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(first->wait()->found_chunks, 1U);
}

TEST(Pipelining, NothingInFlightIsNothingToPoll) {
  scripted_daemon daemon(with_space([](peer& client) { client.drain(); }));
  opened client(daemon);
  EXPECT_EQ(client.connected.poll({}), 0U);
}

TEST(Pipelining, StaysWithinTheCredits) {
  scripted_daemon daemon(with_space(
      [](peer& client) {
        uint32_t served = 0;
        std::vector<request> waiting;
        while (served < 10) {
          while (waiting.size() < std::min(2U, 10 - served))
            waiting.push_back(client.expect(kind::lookup));
          uint8_t more = 0;
          EXPECT_EQ(::recv(client.socket(), &more, 1, MSG_DONTWAIT | MSG_PEEK), -1) << "a third is in flight";
          client.answer_lookup(waiting.front(), served++);
          waiting.erase(waiting.begin());
        }
      },
      {.credit_requests = 2}));
  opened client(daemon);
  std::vector<ticket<lookup_result>> tickets;
  for (int i = 0; i < 10; ++i)
    tickets.push_back(std::move(*client.submit()));
  for (uint32_t i = 0; i < 10; ++i)
    EXPECT_EQ(tickets[i].wait()->found_chunks, i);
}

TEST(Pipelining, OutOfCreditsASubmitKeepsItsDeadline) {
  scripted_daemon daemon(with_space(
      [](peer& client) {
        auto first = client.expect(kind::lookup);
        client.answer_lookup(first, 1);
        client.answer_lookup(client.expect(kind::lookup), 2);
        client.drain();
      },
      {.credit_requests = 1}));
  opened client(daemon);
  auto first = client.submit();
  ASSERT_FINE(first);
  EXPECT_EQ(first->wait()->found_chunks, 1U);
  auto second = client.submit();
  auto third = client.submit(std::chrono::steady_clock::now() - std::chrono::seconds(1));
  if (!third) { // sent unless the second answer was faster
    EXPECT_EQ(third.error().code, errc::deadline);
  }
  EXPECT_EQ(second->wait()->found_chunks, 2U);
}

TEST(Pipelining, BothSidesMaySendMoreThanTheBuffersHold) {
  // The daemon answers each request of 512 KiB with 64 KiB, and reads nothing until its answer is taken.
  constexpr uint32_t requests = 48;
  scripted_daemon daemon(with_space([](peer& client) {
    for (uint32_t i = 0; i < requests; ++i)
      client.answer_lookup(client.expect(kind::lookup), 65'000 + i);
  }));
  opened client(daemon);
  std::vector<uint32_t> tokens(131'072);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::vector<ticket<lookup_result>> tickets;
  for (uint32_t i = 0; i < requests; ++i) {
    auto sent = client.connected.async().lookup({.in = client.space, .what = prefix::of_tokens(tokens)});
    ASSERT_FINE(sent);
    tickets.push_back(std::move(*sent));
  }
  for (uint32_t i = 0; i < requests; ++i)
    EXPECT_EQ(tickets[i].wait()->found_chunks, 65'000 + i);
}

TEST(Pipelining, AForgottenLookupGivesItsLeaseBack) {
  scripted_daemon daemon(with_space([](peer& client) {
    auto forgotten = client.expect(kind::lookup);
    auto other = client.expect(kind::lookup);
    client.answer_lookup(forgotten, 2, 0x55);
    client.answer_lookup(other, 1);
    auto release = client.expect(kind::release);
    EXPECT_EQ(protocol::to_lease_id(release.as<wire::Release>().lease()), lease_of(0x55));
  }));
  opened client(daemon);
  { auto forgotten = client.submit(); }
  auto other = client.submit();
  EXPECT_EQ(other->wait()->found_chunks, 1U);
}

TEST(Pipelining, ATicketDroppedAfterItsAnswerGivesTheLeaseBackToo) {
  scripted_daemon daemon(with_space([](peer& client) {
    client.answer_lookup(client.expect(kind::lookup), 2, 0x55);
    client.expect(kind::release);
  }));
  opened client(daemon);
  auto dropped = client.submit();
  ASSERT_EQ(client.connected.poll({}), 1U);
  EXPECT_TRUE(dropped->ready());
}

TEST(Pipelining, CancelTellsWhetherTheRequestWasFound) {
  scripted_daemon daemon(with_space([](peer& client) {
    auto lookup = client.expect(kind::lookup);
    auto cancel = client.expect(kind::cancel);
    EXPECT_EQ(cancel.as<wire::Cancel>().request(), lookup.id);
    client.refuse(lookup.id, errc::cancelled, "cancelled by its client");
    client.answer(cancel, [](body_builder& body) { return wire::CreateCancelAnswer(body, true); });
  }));
  opened client(daemon);
  auto sent = client.submit();
  auto found = sent->cancel();
  ASSERT_FINE(found);
  EXPECT_TRUE(*found);
  EXPECT_FAILS(sent->wait(), errc::cancelled, "by its client");
}

TEST(Pipelining, GivingUpCancelsWithoutWaitingAndDropsTheAnswer) {
  scripted_daemon daemon(with_space([](peer& client) {
    auto lookup = client.expect(kind::lookup);
    auto cancel = client.expect(kind::cancel);
    EXPECT_EQ(cancel.as<wire::Cancel>().request(), lookup.id);
    auto next = client.expect(kind::lookup); // no answer was awaited
    client.answer_lookup(lookup, 3, 0x66);
    client.answer(cancel, [](body_builder& body) { return wire::CreateCancelAnswer(body, false); });
    client.answer_lookup(next, 1);
    client.expect(kind::release); // releases the lease that was granted all the same
  }));
  opened client(daemon);
  auto sent = client.submit();
  sent->give_up();
  EXPECT_FALSE(*sent);
  sent->give_up(); // the ticket is empty, so nothing happens
  auto next = client.submit();
  EXPECT_EQ(next->wait()->found_chunks, 1U);
}

TEST(Deadlines, ACallThatRunsOutOfTimeIsCancelledAndItsAnswerDropped) {
  scripted_daemon daemon(with_space([](peer& client) {
    auto late = client.expect(kind::lookup);
    EXPECT_EQ(late.as<wire::Lookup>().deadline_ms(), 1U);
    auto cancel = client.expect(kind::cancel);
    EXPECT_EQ(cancel.as<wire::Cancel>().request(), late.id);
    client.answer_lookup(late, 3, 0x66);
    client.answer(cancel, [](body_builder& body) { return wire::CreateCancelAnswer(body, false); });
    client.answer_lookup(client.expect(kind::lookup), 1);
    client.expect(kind::release); // releases the lease that came too late
  }));
  opened client(daemon);
  EXPECT_FAILS(
      client.connected.lookup({.in = client.space, .what = prefix::of_digests(client.digests), .lease = true},
                              std::chrono::steady_clock::now()),
      errc::deadline, "did not answer in time");
  EXPECT_TRUE(client.connected.alive());
  auto next = client.submit();
  EXPECT_EQ(next->wait()->found_chunks, 1U);
}

TEST(Deadlines, ATicketCanBeWaitedForAgain) {
  scripted_daemon daemon(with_space([](peer& client) {
    auto first = client.expect(kind::lookup);
    client.expect(kind::status); // the client has given up once
    client.answer_lookup(first, 1);
    client.drain();
  }));
  opened client(daemon);
  auto first = client.submit();
  EXPECT_FAILS(first->wait(std::chrono::steady_clock::now()), errc::deadline, "in time");
  ASSERT_TRUE(*first);
  EXPECT_FAILS(client.connected.admin().status(std::chrono::steady_clock::now()), errc::deadline, "in time");
  EXPECT_EQ(first->wait()->found_chunks, 1U);
}

TEST(Deadlines, AConnectionWhoseDaemonDoesNotReadKeepsThem) {
  // The socket is full in the middle of a frame; later the rest is sent and the connection works.
  std::promise<void> may_read;
  scripted_daemon daemon(with_space([&may_read](peer& client) {
    may_read.get_future().wait();
    uint32_t served = 0;
    for (;;) {
      auto asked = client.receive();
      if (asked.kind == kind::lookup)
        client.answer_lookup(asked, ++served);
      else if (asked.kind != kind::cancel)
        break;
    }
  }));
  {
    opened client(daemon);
    std::vector<uint32_t> tokens(131'072);
    result<lookup_result> outcome;
    int attempts = 0;
    do { // fills both socket buffers; each request is cancelled, and the cancel queues behind what is stuck
      outcome = client.connected.lookup({.in = client.space, .what = prefix::of_tokens(tokens)},
                                        std::chrono::steady_clock::now());
      ASSERT_FALSE(outcome);
      ASSERT_EQ(outcome.error().code, errc::deadline);
    } while (++attempts < 12);
    may_read.set_value();
    auto last = client.submit();
    ASSERT_FINE(last);
    EXPECT_GE(last->wait()->found_chunks, 2U);
  }
}

TEST(Pipelining, AClientThatPollsTakesAnswersInTheSameWay) {
  scripted_daemon daemon(with_space([](peer& client) {
    std::vector<request> asked;
    for (int i = 0; i < 3; ++i)
      asked.push_back(client.expect(kind::lookup));
    for (size_t i : {2U, 0U, 1U})
      client.answer_lookup(asked[i], static_cast<uint32_t>(i));
  }));
  // `busy_poll` of a second is limited to a millisecond.
  auto connected = connection::over(daemon.socket(), {.name = "test", .busy_poll = std::chrono::seconds(1)});
  ASSERT_FINE(connected);
  auto space = connected->open_space(some_space());
  ASSERT_FINE(space);
  auto digests = some_digests(4);
  std::vector<ticket<lookup_result>> tickets;
  for (int i = 0; i < 3; ++i)
    tickets.push_back(
        std::move(*connected->async().lookup({.in = *space, .what = prefix::of_digests(digests)})));
  EXPECT_EQ(tickets[0].wait()->found_chunks, 0U);
  EXPECT_EQ(tickets[2].wait(within(std::chrono::seconds(60)))->found_chunks, 2U);
  EXPECT_EQ(tickets[1].wait()->found_chunks, 1U);
}
