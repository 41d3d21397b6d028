#include "runtime/ring_port.hpp"
#include "support/actor_fixture.hpp"
#include "support/runtime_fixture.hpp"

#include <fcntl.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

namespace terrace::runtime {
namespace {

struct log_state {
  std::vector<io_done> seen;
  home where;
};

using logger_actor = caf::stateful_actor<log_state, homed_actor>;
using log_pointer = std::shared_ptr<std::vector<io_done>>;

/// Logs what it is told.
caf::behavior keeps_a_log(logger_actor* self, log_pointer log) {
  self->state.where = self->where();
  return {[log](const io_done& done) { log->push_back(done); }};
}

class RingPort : public test::actor_fixture {
 public:
  log_pointer log = std::make_shared<std::vector<io_done>>();
  caf::actor owner = spawn_homed(sys, home(), keeps_a_log, log);
  caf::strong_actor_ptr address() { return caf::actor_cast<caf::strong_actor_ptr>(owner); }
};

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST_F(RingPort, SendsOneMessageForEachOperationWithItsTagAndName) {
  auto first = port().submit({}, address(), 10);
  auto second = port().submit({.code = io_code::fsync, .fd = -1}, address(), 11);
  EXPECT_NE(first, operation_id{});
  EXPECT_NE(first, second);
  settle();
  ASSERT_EQ(log->size(), 2u);
  EXPECT_EQ((*log)[0].tag, 10u);
  EXPECT_EQ((*log)[0].id, first);
  EXPECT_EQ((*log)[0].result, 0);
  EXPECT_EQ((*log)[1].result, -EBADF);
}

TEST_F(RingPort, NeverGivesANameTwiceAlthoughRecordsAreReused) {
  std::set<operation_id> names;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(names.insert(port().submit({}, address(), 0)).second);
    settle();
  }
}

TEST_F(RingPort, CancelsByNameAndIgnoresNamesOfThePast) {
  auto past = port().submit({}, address(), 0);
  settle();
  auto id = port().submit({.code = io_code::timeout, .after = std::chrono::hours{1}}, address(), 1);
  port().cancel(past);
  port().cancel(operation_id{});
  settle();
  EXPECT_EQ(log->size(), 1u);
  port().cancel(id);
  settle();
  ASSERT_EQ(log->size(), 2u);
  EXPECT_EQ(log->back().result, -ECANCELED);
}

TEST_F(RingPort, ADeadlineIsATimeoutOfTheRing) {
  port().submit({.code = io_code::timeout, .after = std::chrono::seconds{3}}, address(), 5);
  advance(std::chrono::seconds{2});
  EXPECT_TRUE(log->empty());
  advance(std::chrono::seconds{1});
  ASSERT_EQ(log->size(), 1u);
  EXPECT_EQ(log->front().result, -ETIME);
}

/// Bytes for a quiet send.
struct quiet_bytes {
  std::string bytes = "answer";
  quiet_send quiet{.in_flight = true};
};

io_request send_quietly(int fd, const std::shared_ptr<quiet_bytes>& what) {
  return {.code = io_code::send,
          .fd = fd,
          .data = what->bytes.data(),
          .length = static_cast<uint32_t>(what->bytes.size()),
          .quiet = &what->quiet,
          .keep_alive = what};
}

TEST_F(RingPort, NobodyHearsOfAQuietSendUnlessItIsAnnounced) {
  test::socket_pair pair;
  auto what = std::make_shared<quiet_bytes>();
  port().submit(send_quietly(pair.fds[1], what), address(), 7);
  EXPECT_GT(what.use_count(), 1) << "the kernel has not read it yet";
  settle();
  EXPECT_FALSE(what->quiet.in_flight);
  EXPECT_EQ(what.use_count(), 1);
  EXPECT_TRUE(log->empty());
  what->quiet = {.in_flight = true};
  port().submit(send_quietly(pair.fds[1], what), address(), 8);
  what->quiet.announced = true;
  settle();
  ASSERT_EQ(log->size(), 1u);
  EXPECT_EQ(log->front().tag, 8u);
  EXPECT_EQ(log->front().result, 6);
}

TEST_F(RingPort, AQuietSendThatDoesNotSucceedIsToldAndStaysInFlight) {
  test::socket_pair pair;
  auto what = std::make_shared<quiet_bytes>();
  ring.shorten(io_code::sendmsg, 2);
  port().submit(send_quietly(pair.fds[1], what), address(), 7);
  settle();
  ASSERT_EQ(log->size(), 1u);
  EXPECT_EQ(log->back().result, 2);
  EXPECT_TRUE(what->quiet.in_flight) << "the rest is to be sent before anything else";
  ring.send_at_once(false);
  port().submit(send_quietly(pair.fds[1], what), address(), 7);
  settle();
  ASSERT_EQ(log->size(), 2u);
  EXPECT_EQ(log->back().result, -EAGAIN);
}

TEST_F(RingPort, ARecordKeepsTheBufferUntilItsCompletionIsReaped) {
  test::socket_pair pair;
  auto buffer = std::make_shared<test::message_buffer>(64);
  std::weak_ptr<test::message_buffer> watch = buffer;
  ring.hold(io_code::recvmsg);
  port().submit(test::receive_into(pair.fds[0], buffer), address(), 0);
  buffer.reset();
  stop(owner); // the actor quits, and its operations are cancelled
  EXPECT_EQ(ring.cancelled(), 1u);
  EXPECT_FALSE(watch.expired()) << "the kernel may still write to it";
  ring.release(io_code::recvmsg);
  settle();
  EXPECT_TRUE(watch.expired());
  EXPECT_TRUE(log->empty());
}

/// A listening socket in the abstract namespace and a client that has connected to it.
struct listening {
  listening() : fd(::socket(AF_UNIX, SOCK_STREAM, 0)), client(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    socklen_t length = sizeof(sa_family_t); // autobind to a free abstract name
    (void) !::bind(fd, reinterpret_cast<sockaddr*>(&name), length);
    (void) !::listen(fd, 8);
    length = sizeof name;
    (void) !::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length);
    (void) !::connect(client, reinterpret_cast<sockaddr*>(&name), length);
  }
  ~listening() {
    ::close(fd);
    ::close(client);
  }
  bool client_sees_the_end() const {
    char byte;
    return ::recv(client, &byte, 1, MSG_DONTWAIT) == 0;
  }
  int fd;
  int client;
};

TEST_F(RingPort, HandsAnAcceptedDescriptorOver) {
  listening socket;
  port().submit({.code = io_code::accept, .fd = socket.fd, .flags = SOCK_CLOEXEC}, address(), 0);
  settle();
  ASSERT_EQ(log->size(), 1u);
  ASSERT_GE(log->front().result, 0);
  EXPECT_TRUE(is_open(log->front().result));
  EXPECT_FALSE(socket.client_sees_the_end());
  ::close(log->front().result);
}

TEST_F(RingPort, ClosesAnAcceptedDescriptorWhoseOwnerHasEnded) {
  listening socket;
  ring.hold(io_code::accept);
  port().submit({.code = io_code::accept, .fd = socket.fd}, address(), 0);
  settle(); // accepted, but the completion is held back
  stop(owner);
  EXPECT_FALSE(socket.client_sees_the_end());
  ring.release(io_code::accept);
  settle();
  EXPECT_TRUE(socket.client_sees_the_end());
}

TEST_F(RingPort, ClosesAnAcceptedDescriptorThatStillLiesInTheMailbox) {
  listening socket;
  port().submit({.code = io_code::accept, .fd = socket.fd}, address(), 0);
  caf::anon_send_exit(owner, caf::exit_reason::kill); // the exit message runs first
  static_cast<ring_port&>(port()).deliver();
  settle();
  EXPECT_TRUE(log->empty());
  EXPECT_TRUE(socket.client_sees_the_end());
}

struct control_buffer : test::message_buffer {
  control_buffer() : test::message_buffer(16) {
    header.msg_control = room;
    header.msg_controllen = sizeof room;
  }
  alignas(cmsghdr) char room[CMSG_SPACE(4 * sizeof(int))] = {};
};

void send_descriptor(int socket, int fd) {
  control_buffer message;
  message.header.msg_controllen = CMSG_SPACE(sizeof(int));
  auto* part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  (void) !::sendmsg(socket, &message.header, 0);
}

TEST_F(RingPort, ClosesReceivedDescriptorsWhoseOwnerHasEnded) {
  test::socket_pair pair;
  test::socket_pair passed;
  send_descriptor(pair.fds[1], passed.fds[1]);
  passed.close_one(1); // the copy in flight is the only one left
  auto buffer = std::make_shared<control_buffer>();
  ring.hold(io_code::recvmsg);
  port().submit(
      {.code = io_code::recvmsg, .fd = pair.fds[0], .message = &buffer->header, .keep_alive = buffer},
      address(), 0);
  settle();
  stop(owner);
  ring.release(io_code::recvmsg);
  char byte;
  EXPECT_EQ(::recv(passed.fds[0], &byte, 1, MSG_DONTWAIT), -1) << "still open";
  settle();
  EXPECT_EQ(::recv(passed.fds[0], &byte, 1, MSG_DONTWAIT), 0) << "closed";
}

TEST_F(RingPort, CloseCancelsEverythingAndDropsWhatComesLater) {
  test::socket_pair pair;
  auto& own = static_cast<ring_port&>(port());
  for (int i = 0; i < 5; ++i)
    port().submit(test::receive_into(pair.fds[0], std::make_shared<test::message_buffer>(8)), address(), 0);
  EXPECT_EQ(own.in_flight(), 5u);
  own.close();
  EXPECT_EQ(own.in_flight(), 0u);
  EXPECT_TRUE(ring.closed());
  port().submit({}, address(), 0);
  EXPECT_EQ(own.in_flight(), 0u);
}

TEST_F(RingPort, ForwardsCancelsOfAnotherRing) {
  ring_port other{3};
  other.open(std::make_unique<simulated_ring>(), nullptr);
  auto theirs = other.submit({.code = io_code::timeout, .after = std::chrono::hours{1}}, address(), 0);
  std::vector<operation_id> forwarded;
  auto& own = static_cast<ring_port&>(port());
  own.forward_cancels([&](operation_id id) { forwarded.push_back(id); });
  own.cancel(theirs);
  ASSERT_EQ(forwarded.size(), 1u);
  EXPECT_EQ(forwarded[0], theirs);
  EXPECT_EQ(operation_pool::ring_of(theirs), 3);
  own.forward_cancels({});
  other.close();
}

} // namespace
} // namespace terrace::runtime
