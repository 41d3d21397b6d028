// The bell of a connection, and its fate when the daemon is lost.
#include "scripted_daemon.hpp"

#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

namespace {

struct daemons_end {
  unique_fd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void answer(peer& client) const {
    client.answer(client.expect(kind::bell), [](body_builder& body) { return wire::CreateBellAnswer(body); },
                  {event.get()});
  }
  /// Returns the number of rings since the last call.
  uint64_t heard() const {
    uint64_t rings = 0;
    return ::read(event.get(), &rings, sizeof rings) == 8 ? rings : 0;
  }
};

} // namespace

TEST(Bell, IsAskedForOnceAndRingsForAllHandles) {
  daemons_end at;
  scripted_daemon daemon([&](peer& client) {
    client.welcome();
    at.answer(client);
    client.drain();
  });
  auto connected = daemon.connect();
  auto first = connected.bell();
  ASSERT_FINE(first);
  auto second = connected.bell();
  ASSERT_FINE(second);
  EXPECT_EQ(first->descriptor(), second->descriptor());
  first->ring();
  second->ring();
  bell(*first).ring();
  EXPECT_EQ(at.heard(), 3U);
}

TEST(Bell, RingsAtTheNextDaemonAfterAReconnect) {
  daemons_end before, after;
  scripted_daemon daemon(std::vector<script>{[&](peer& client) {
                                               client.welcome({.boot = 1});
                                               before.answer(client);
                                             },
                                             [&](peer& client) {
                                               client.welcome({.boot = 2});
                                               after.answer(client);
                                               client.drain();
                                             }});
  auto connected = connection::connect({.path = daemon.path()});
  ASSERT_FINE(connected);
  auto mine = connected->bell();
  ASSERT_FINE(mine);
  auto copy = *mine; // a copy that an engine's stream has
  copy.ring();
  EXPECT_EQ(before.heard(), 1U);
  EXPECT_FAILS(connected->admin().status(), errc::gone, "the daemon is gone");
  copy.ring(); // nobody listens, and nothing fails
  ASSERT_FINE(connected->reconnect());
  copy.ring();
  EXPECT_EQ(after.heard(), 1U);
  EXPECT_EQ(before.heard(), 1U) << "the one while it was lost";
}

TEST(Bell, OutlivesItsConnection) {
  daemons_end at;
  std::optional<bell> kept;
  {
    scripted_daemon daemon([&](peer& client) {
      client.welcome();
      at.answer(client);
      client.drain();
    });
    auto connected = daemon.connect();
    kept = *connected.bell();
  }
  kept->ring();
  EXPECT_EQ(at.heard(), 1U);
}

TEST(Bell, WithoutADescriptorTheAnswerIsAnError) {
  scripted_daemon daemon([&](peer& client) {
    client.welcome();
    client.answer(client.expect(kind::bell), [](body_builder& body) { return wire::CreateBellAnswer(body); });
    client.refuse(client.expect(kind::bell).id, errc::busy, "no descriptors left");
    client.drain();
  });
  auto connected = daemon.connect();
  EXPECT_FAILS(connected.bell(), errc::internal, "expected a descriptor");
  EXPECT_FAILS(connected.bell(), errc::busy, "no descriptors");
}
