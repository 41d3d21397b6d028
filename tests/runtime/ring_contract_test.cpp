// The contract of every ring, whoever executes the operations.
#include "runtime/simulated_ring.hpp"
#include "runtime/uring.hpp"
#include "support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <utility>
#include <vector>

namespace terrace::runtime {
namespace {

struct kernel_maker {
  static std::unique_ptr<ring> make() { return std::move(*make_uring({.ring_entries = 8})); }
  static void pass_time(ring&) {}
};

struct simulated_maker {
  static std::unique_ptr<ring> make() { return std::make_unique<simulated_ring>(); }
  static void pass_time(ring& kernel) {
    static_cast<simulated_ring&>(kernel).advance(std::chrono::milliseconds{1});
  }
};

struct shuffled_maker {
  static std::unique_ptr<ring> make() { return std::make_unique<simulated_ring>(42); }
  static void pass_time(ring& kernel) { simulated_maker::pass_time(kernel); }
};

template <class Maker>
class RingContract : public ::testing::Test {
 public:
  ~RingContract() override { kernel->close(); }

  std::vector<completion> collect(size_t count) {
    std::vector<completion> all;
    std::array<completion, 4> some;
    while (all.size() < count) {
      auto n = kernel->reap(some);
      all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(n));
      if (n == 0)
        kernel->wait();
    }
    return all;
  }

  std::unique_ptr<ring> kernel = Maker::make();
};

using rings = ::testing::Types<kernel_maker, simulated_maker, shuffled_maker>;
TYPED_TEST_SUITE(RingContract, rings);

TYPED_TEST(RingContract, TellsThatSomethingIsReadyWithoutBeingEntered) {
  EXPECT_FALSE(this->kernel->has_ready());
  test::socket_pair pair;
  operation op{.request = {.code = io_code::poll, .fd = pair.fds[0], .events = POLLIN}};
  this->kernel->start(op);
  this->kernel->enter();
  EXPECT_FALSE(this->kernel->has_ready());
  ASSERT_EQ(::write(pair.fds[1], "x", 1), 1);
  while (!this->kernel->has_ready()) { // waits for the kernel's flag or a completion
    if (std::is_same_v<TypeParam, simulated_maker> || std::is_same_v<TypeParam, shuffled_maker>)
      this->kernel->enter(); // a simulated kernel works only when it is called
  }
  this->kernel->enter();
  EXPECT_EQ(this->collect(1).front().op, &op);
  EXPECT_FALSE(this->kernel->has_ready());
}

TYPED_TEST(RingContract, CompletesEveryOperationExactlyOnce) {
  std::vector<operation> operations(200);
  std::set<operation*> ended;
  for (auto& op : operations)
    this->kernel->start(op);
  for (auto& done : this->collect(operations.size()))
    EXPECT_TRUE(ended.insert(done.op).second);
  std::array<completion, 1> more;
  this->kernel->enter();
  EXPECT_EQ(this->kernel->reap(more), 0u);
}

TYPED_TEST(RingContract, ReadsWhatItWroteByAnyForm) {
  int file = ::memfd_create("ring_contract", MFD_CLOEXEC);
  std::string out = "written";
  std::string in(7, '\0');
  iovec out_vector{out.data(), out.size()};
  iovec in_vector{in.data(), in.size()};
  operation write{
      .request = {.code = io_code::write, .fd = file, .offset = 100, .data = out.data(), .length = 7}};
  operation read{
      .request = {.code = io_code::read, .fd = file, .offset = 100, .data = in.data(), .length = 7}};
  operation writev{
      .request = {.code = io_code::writev, .fd = file, .offset = 900, .data = &out_vector, .length = 1}};
  operation readv{
      .request = {.code = io_code::readv, .fd = file, .offset = 900, .data = &in_vector, .length = 1}};
  operation sync{.request = {.code = io_code::fsync, .fd = file}};
  for (auto* op : {&write, &read}) {
    this->kernel->start(*op);
    EXPECT_EQ(this->collect(1)[0].result, 7);
  }
  EXPECT_EQ(in, out);
  in.assign(7, '\0');
  for (auto* op : {&writev, &readv}) {
    this->kernel->start(*op);
    EXPECT_EQ(this->collect(1)[0].result, 7);
  }
  EXPECT_EQ(in, out);
  this->kernel->start(sync);
  EXPECT_EQ(this->collect(1)[0].result, 0);
  ::close(file);
}

TYPED_TEST(RingContract, AReadOfAnEventWaitsForIt) {
  int event = ::eventfd(0, EFD_CLOEXEC);
  uint64_t count = 0;
  for (uint64_t expected : {1, 5}) {
    operation read{.request = {.code = io_code::read, .fd = event, .data = &count, .length = sizeof count}};
    this->kernel->start(read);
    this->kernel->enter();
    EXPECT_FALSE(this->kernel->has_ready());
    ASSERT_EQ(::write(event, &expected, sizeof expected), 8);
    EXPECT_EQ(this->collect(1)[0].result, 8);
    EXPECT_EQ(count, expected);
  }
  operation read{.request = {.code = io_code::read, .fd = event, .data = &count, .length = sizeof count}};
  this->kernel->start(read);
  this->kernel->enter();
  this->kernel->cancel(read);
  EXPECT_EQ(this->collect(1)[0].result, -ECANCELED);
  ::close(event);
}

TYPED_TEST(RingContract, AnErrorIsANegativeErrno) {
  operation read{.request = {.code = io_code::read, .fd = -1}};
  this->kernel->start(read);
  EXPECT_EQ(this->collect(1)[0].result, -EBADF);
}

TYPED_TEST(RingContract, SendsReceivesAndPolls) {
  test::socket_pair pair;
  auto in = std::make_shared<test::message_buffer>(16);
  auto out = test::message_buffer::of("hello");
  operation receive{.request = test::receive_into(pair.fds[0], in)};
  operation send{.request = test::send_from(pair.fds[1], out)};
  operation poll{.request = {.code = io_code::poll, .fd = pair.fds[1], .events = POLLOUT}};
  this->kernel->start(receive);
  this->kernel->enter();
  this->kernel->start(send);
  for (auto& done : this->collect(2))
    EXPECT_EQ(done.result, 5);
  EXPECT_EQ(in->bytes.substr(0, 5), "hello");
  this->kernel->start(poll);
  EXPECT_NE(this->collect(1)[0].result & POLLOUT, 0);
}

operation send_of(int fd, std::string& bytes) {
  return {.request = {.code = io_code::send,
                      .fd = fd,
                      .data = bytes.data(),
                      .length = static_cast<uint32_t>(bytes.size()),
                      .flags = MSG_NOSIGNAL}};
}

TYPED_TEST(RingContract, ASendEndsAtOnceWithWhatTheSocketTakes) {
  test::socket_pair pair;
  std::string bytes(size_t{1} << 16, 'x');
  auto send = [&](std::string& what) {
    operation op = send_of(pair.fds[1], what);
    this->kernel->start(op);
    return this->collect(1)[0].result;
  };
  EXPECT_EQ(send(bytes), 1 << 16);
  std::string many(size_t{1} << 22, 'y');
  int32_t taken = send(many);
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 1 << 22) << "more than the socket holds";
  EXPECT_EQ(send(bytes), -EAGAIN) << "it is full";
  std::string in((size_t{1} << 16) + (size_t{1} << 22), ' ');
  size_t got = 0;
  for (ssize_t n = 0; (n = ::recv(pair.fds[0], in.data() + got, in.size() - got, MSG_DONTWAIT)) > 0;)
    got += static_cast<size_t>(n);
  EXPECT_EQ(got, (size_t{1} << 16) + static_cast<size_t>(taken));
  EXPECT_EQ(send(bytes), 1 << 16) << "there is room again";
  pair.close_one(0);
  EXPECT_EQ(send(bytes), -EPIPE);
}

TYPED_TEST(RingContract, SendsThatStartTogetherHaveTheirOwnEnds) {
  constexpr size_t count = 20; // more than the kernel's queue holds
  std::vector<test::socket_pair> pairs(count);
  std::string bytes = "answer";
  std::vector<operation> sends;
  for (size_t i = 0; i < count; ++i) {
    if (i % 3 == 1)
      pairs[i].close_one(0);
    sends.push_back(send_of(pairs[i].fds[1], bytes));
  }
  for (operation& each : sends)
    this->kernel->start(each);
  std::set<operation*> ended;
  for (auto& done : this->collect(count)) {
    EXPECT_TRUE(ended.insert(done.op).second);
    EXPECT_EQ(done.result, (done.op - sends.data()) % 3 == 1 ? -EPIPE : 6);
  }
  std::array<completion, 1> more;
  this->kernel->enter();
  EXPECT_EQ(this->kernel->reap(more), 0u);
}

TYPED_TEST(RingContract, ACancelledSendEndsOnce) {
  test::socket_pair pair;
  std::string bytes = "answer";
  operation send = send_of(pair.fds[1], bytes);
  this->kernel->start(send);
  this->kernel->cancel(send);
  auto done = this->collect(1);
  EXPECT_EQ(done[0].op, &send);
  EXPECT_TRUE(done[0].result == 6 || done[0].result == -ECANCELED);
  std::array<completion, 1> more;
  this->kernel->enter();
  EXPECT_EQ(this->kernel->reap(more), 0u);
}

TYPED_TEST(RingContract, AReceiveEndsHoweverTheRingIsEntered) {
  constexpr size_t count = 20; // more than the kernel's queue holds
  std::vector<test::socket_pair> pairs(count);
  std::vector<operation> receives;
  for (test::socket_pair& pair : pairs)
    receives.push_back(
        {.request = test::receive_into(pair.fds[0], std::make_shared<test::message_buffer>(16))});
  for (size_t i = 0; i < count / 2; ++i) {
    this->kernel->start(receives[i]);
    ASSERT_EQ(::write(pairs[i].fds[1], "hello", 5), 5);
  }
  this->kernel->enter_between();
  for (size_t i = count / 2; i < count; ++i) { // the sockets have no data when the receives are submitted
    this->kernel->start(receives[i]);
    this->kernel->enter_between();
    this->kernel->enter_between();
    ASSERT_EQ(::write(pairs[i].fds[1], "hello", 5), 5);
  }
  std::set<operation*> ended;
  for (auto& done : this->collect(count)) {
    EXPECT_TRUE(ended.insert(done.op).second);
    EXPECT_EQ(done.result, 5);
  }
}

TYPED_TEST(RingContract, AReceiveThatIsKeptUntilTheNextCallCanBeCancelled) {
  test::socket_pair pair;
  operation receive{.request = test::receive_into(pair.fds[0], std::make_shared<test::message_buffer>(16))};
  this->kernel->start(receive);
  this->kernel->enter_between();
  this->kernel->cancel(receive);
  auto done = this->collect(1);
  EXPECT_EQ(done[0].op, &receive);
  EXPECT_EQ(done[0].result, -ECANCELED);
  std::array<completion, 1> more;
  this->kernel->enter_between();
  this->kernel->enter();
  EXPECT_EQ(this->kernel->reap(more), 0u);
}

TYPED_TEST(RingContract, ACancelledReceiveEndsOnceWithEcanceled) {
  test::socket_pair pair;
  operation receive{.request = test::receive_into(pair.fds[0], std::make_shared<test::message_buffer>(16))};
  this->kernel->start(receive);
  this->kernel->cancel(receive);
  auto done = this->collect(1);
  EXPECT_EQ(done[0].op, &receive);
  EXPECT_EQ(done[0].result, -ECANCELED);
}

TYPED_TEST(RingContract, ATimeoutEndsWithEtime) {
  operation timeout{.request = {.code = io_code::timeout, .after = std::chrono::milliseconds{1}}};
  this->kernel->start(timeout);
  TypeParam::pass_time(*this->kernel);
  EXPECT_EQ(this->collect(1)[0].result, -ETIME);
}

} // namespace
} // namespace terrace::runtime
