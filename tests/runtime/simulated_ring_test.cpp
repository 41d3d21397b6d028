#include "runtime/simulated_ring.hpp"
#include "support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace terrace::runtime {
namespace {

std::vector<completion> reap_all(ring& kernel) {
  std::array<completion, 64> out;
  auto n = kernel.reap(out);
  return {out.begin(), out.begin() + static_cast<ptrdiff_t>(n)};
}

operation read_of(int fd, std::string& into) {
  return {.request = {.code = io_code::read,
                      .fd = fd,
                      .data = into.data(),
                      .length = static_cast<uint32_t>(into.size())}};
}

struct memory_file {
  memory_file() : fd(::memfd_create("simulated_ring_test", MFD_CLOEXEC)) {
    (void) !::pwrite(fd, "0123456789", 10, 0);
  }
  ~memory_file() { ::close(fd); }
  int fd;
};

TEST(SimulatedRing, ExecutesWithRealSystemCalls) {
  memory_file file;
  simulated_ring kernel;
  std::string into(10, '\0');
  auto op = read_of(file.fd, into);
  kernel.start(op);
  auto done = reap_all(kernel);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].result, 10);
  EXPECT_EQ(into, "0123456789");
}

TEST(SimulatedRing, InjectsErrorsAShortReadAndMadeUpResults) {
  memory_file file;
  simulated_ring kernel;
  std::string into(10, '\0');
  auto op = read_of(file.fd, into);
  kernel.fail_next(io_code::read, EIO);
  kernel.start(op);
  EXPECT_EQ(reap_all(kernel)[0].result, -EIO);
  kernel.shorten(io_code::read, 4);
  kernel.start(op);
  EXPECT_EQ(reap_all(kernel)[0].result, 4);
  EXPECT_EQ(into.substr(0, 5), std::string("0123\0", 5));
  kernel.respond(
      [](const io_request& r) { return r.code == io_code::read ? std::optional<int32_t>{7} : std::nullopt; });
  kernel.start(op);
  EXPECT_EQ(reap_all(kernel)[0].result, 7);
}

TEST(SimulatedRing, AReceiveWaitsForItsBytesOrItsCancel) {
  test::socket_pair pair;
  simulated_ring kernel;
  auto buffer = std::make_shared<test::message_buffer>(16);
  operation receive{.request = test::receive_into(pair.fds[0], buffer)};
  kernel.start(receive);
  EXPECT_TRUE(reap_all(kernel).empty());
  ASSERT_EQ(::write(pair.fds[1], "hello", 5), 5);
  EXPECT_EQ(reap_all(kernel)[0].result, 5);
  kernel.start(receive);
  kernel.cancel(receive);
  EXPECT_EQ(reap_all(kernel)[0].result, -ECANCELED);
  EXPECT_EQ(kernel.cancelled(), 1u);
}

TEST(SimulatedRing, ForgetsHeldCompletionsUntilTheyAreReleased) {
  simulated_ring kernel;
  operation held{.request = {.code = io_code::fsync, .fd = -1}};
  operation other;
  kernel.hold(io_code::fsync);
  kernel.start(held);
  kernel.start(other);
  auto done = reap_all(kernel);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].op, &other);
  EXPECT_EQ(kernel.in_flight(io_code::fsync), 1u);
  kernel.release(io_code::fsync);
  EXPECT_EQ(reap_all(kernel)[0].result, -EBADF);
}

TEST(SimulatedRing, ReordersBySeedTheSameWayEachTime) {
  auto order = [](uint64_t seed) {
    simulated_ring kernel{seed};
    std::vector<operation> operations(20);
    for (auto& op : operations)
      kernel.start(op);
    std::vector<ptrdiff_t> out;
    for (auto& done : reap_all(kernel))
      out.push_back(done.op - operations.data());
    return out;
  };
  auto plain = order(0);
  EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
  EXPECT_EQ(order(7), order(7));
  EXPECT_NE(order(7), order(0));
  EXPECT_NE(order(7), order(8));
}

TEST(SimulatedRing, TimeoutsFollowTheTestsClock) {
  simulated_ring kernel;
  operation op{.request = {.code = io_code::timeout, .after = std::chrono::seconds{5}}};
  kernel.start(op);
  kernel.advance(std::chrono::seconds{4});
  EXPECT_TRUE(reap_all(kernel).empty());
  kernel.advance(std::chrono::seconds{1});
  EXPECT_EQ(reap_all(kernel)[0].result, -ETIME);
}

TEST(SimulatedRing, RefusesArenasOnRequest) {
  simulated_ring kernel;
  EXPECT_EQ(kernel.register_arena(nullptr, 2 * buffer_slot_bytes), 0);
  EXPECT_EQ(kernel.register_arena(nullptr, 1), 2);
  kernel.grant_buffers(false);
  EXPECT_EQ(kernel.register_arena(nullptr, 1), -1);
}

} // namespace
} // namespace terrace::runtime
