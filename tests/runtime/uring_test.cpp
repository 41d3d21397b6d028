#include "runtime/uring.hpp"
#include "support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <vector>

namespace terrace::runtime {
namespace {

std::unique_ptr<ring> small_ring(uint32_t entries = 8) {
  auto made = make_uring({.ring_entries = entries, .buffer_slots = 4});
  EXPECT_TRUE(made) << made.error().text;
  return std::move(*made);
}

/// Waits until `count` completions have come.
std::vector<completion> collect(ring& kernel, size_t count) {
  std::vector<completion> all;
  std::array<completion, 3> some;
  while (all.size() < count) {
    auto n = kernel.reap(some);
    all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(n));
    if (n == 0)
      kernel.wait();
  }
  return all;
}

TEST(Uring, CompletesMoreOperationsThanItsQueueHolds) {
  auto kernel = small_ring(8);
  std::vector<operation> operations(1000);
  for (auto& op : operations)
    kernel->start(op);
  EXPECT_EQ(collect(*kernel, operations.size()).size(), 1000u);
  kernel->close();
}

TEST(Uring, EndsATimeoutWithEtimeAndACancelledOneWithEcanceled) {
  auto kernel = small_ring();
  operation soon{.request = {.code = io_code::timeout, .after = std::chrono::milliseconds{1}}};
  operation never{.request = {.code = io_code::timeout, .after = std::chrono::hours{1}}};
  kernel->start(never);
  kernel->start(soon);
  auto first = collect(*kernel, 1);
  EXPECT_EQ(first[0].op, &soon);
  EXPECT_EQ(first[0].result, -ETIME);
  kernel->cancel(never);
  auto second = collect(*kernel, 1);
  EXPECT_EQ(second[0].op, &never);
  EXPECT_EQ(second[0].result, -ECANCELED);
  kernel->close();
}

TEST(Uring, AWakeFromAnotherThreadEndsTheWait) {
  auto kernel = small_ring();
  for (int i = 0; i < 100; ++i) {
    std::thread other{[&] { kernel->wake(); }};
    kernel->wait();
    std::array<completion, 1> none;
    EXPECT_EQ(kernel->reap(none), 0u);
    other.join();
  }
  kernel->close();
  kernel->wake(); // `wake` is still allowed after `close`
}

TEST(Uring, AQuietSendDoesNotEndTheWaitThatSubmitsIt) {
  auto kernel = small_ring();
  if (!kernel->features().defer_taskrun)
    GTEST_SKIP() << "this kernel completes every operation";
  test::socket_pair answers, requests;
  std::string out = "a";
  auto in = std::make_shared<test::message_buffer>(16);
  quiet_send quiet{.in_flight = true};
  operation send{.request = {.code = io_code::send,
                             .fd = answers.fds[1],
                             .data = out.data(),
                             .length = 1,
                             .flags = MSG_NOSIGNAL,
                             .quiet = &quiet}};
  operation receive{.request = test::receive_into(requests.fds[1], in)};
  kernel->start(receive);
  kernel->start(send);
  std::thread client{[&] { // the client asks again after each answer
    char byte;
    EXPECT_EQ(::recv(answers.fds[0], &byte, 1, 0), 1);
    EXPECT_EQ(::send(requests.fds[0], "b", 1, 0), 1);
  }};
  kernel->wait();
  client.join();
  std::array<completion, 4> done;
  EXPECT_EQ(kernel->reap(done), 2u);
  quiet.announced = true; // from now on its end matters
  kernel->start(send);
  kernel->wait();
  ASSERT_EQ(kernel->reap(done), 1u);
  EXPECT_EQ(done[0].op, &send);
  EXPECT_EQ(done[0].result, 1);
  kernel->close();
}

TEST(Uring, ReadsIntoARegisteredArenaAndIntoPlainMemoryAlike) {
  auto kernel = small_ring();
  constexpr size_t size = 1 << 16;
  auto* arena =
      static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  int slot = kernel->register_arena(arena, size);
  EXPECT_EQ(slot, 0);
  EXPECT_FALSE(kernel->features().registered_buffers);
  kernel->wait(); // the wait registers the slot, unless memlock refuses
  int file = ::memfd_create("uring_test", MFD_CLOEXEC);
  ASSERT_EQ(::pwrite(file, "terrace", 7, 4096), 7);
  char plain[7] = {};
  operation fixed{.request = {.code = io_code::read,
                              .fd = file,
                              .offset = 4096,
                              .data = arena,
                              .length = 7,
                              .fixed_buffer = slot}};
  operation elsewhere{.request = {.code = io_code::read,
                                  .fd = file,
                                  .offset = 4096,
                                  .data = plain,
                                  .length = 7,
                                  .fixed_buffer = slot}};
  kernel->start(fixed);
  kernel->start(elsewhere);
  for (auto& done : collect(*kernel, 2))
    EXPECT_EQ(done.result, 7);
  EXPECT_EQ(std::string_view(arena, 7), "terrace");
  EXPECT_EQ(std::string_view(plain, 7), "terrace");
  kernel->close();
  ::close(file);
  ::munmap(arena, size);
}

TEST(Uring, AnArenaThatCannotBeRegisteredIsSkippedAndTheNextOneIsNot) {
  auto kernel = small_ring();
  EXPECT_EQ(kernel->register_arena(nullptr, 5 * buffer_slot_bytes), -1) << "more than the table holds";
  EXPECT_EQ(kernel->register_arena(reinterpret_cast<void*>(4096), 4096), 0) << "no memory there";
  kernel->wait();
  auto page = std::make_unique<std::array<char, 4096>>();
  EXPECT_EQ(kernel->register_arena(page.get(), page->size()), 1);
  kernel->wait();
  kernel->close();
}

/// Committed bytes in this range.
uint64_t resident_bytes(void* data, uint64_t size) {
  std::vector<unsigned char> pages(size / 4096);
  EXPECT_EQ(::mincore(data, size, pages.data()), 0);
  return 4096 * static_cast<uint64_t>(
                    std::count_if(pages.begin(), pages.end(), [](auto p) { return (p & 1) != 0; }));
}

// Registering commits memory, as these untouched pages show.
TEST(Uring, RegistersOneSlotEachTimeItHasNothingElseToDo) {
  auto kernel = small_ring();
  constexpr uint64_t size = 3 * buffer_slot_bytes;
  void* arena =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(arena, MAP_FAILED);
  ASSERT_EQ(kernel->register_arena(arena, size), 0);
  EXPECT_EQ(resident_bytes(arena, size), 0u);
  kernel->wait();
  if (!kernel->features().registered_buffers)
    GTEST_SKIP() << "memlock grants nothing";
  EXPECT_EQ(resident_bytes(arena, size), buffer_slot_bytes);
  kernel->enter();
  EXPECT_EQ(resident_bytes(arena, size), buffer_slot_bytes);
  kernel->wait();
  EXPECT_EQ(resident_bytes(arena, size), 2 * buffer_slot_bytes);
  kernel->unregister_arena(0, size);
  kernel->wait();
  kernel->wait();
  kernel->wait();
  EXPECT_EQ(resident_bytes(arena, size), 2 * buffer_slot_bytes)
      << "the last slot was not registered any more";
  kernel->close();
  ::munmap(arena, size);
}

TEST(Uring, AReceiveGoesBehindWhatIsStartedAfterItAndMayBeCancelledBefore) {
  auto kernel = small_ring();
  test::socket_pair pair;
  ASSERT_EQ(::send(pair.fds[1], "x", 1, 0), 1);
  operation receive{.request = test::receive_into(pair.fds[0], std::make_shared<test::message_buffer>(64))};
  operation other{.request = {.code = io_code::nop}};
  kernel->start(receive);
  EXPECT_TRUE(kernel->has_unsubmitted());
  kernel->start(other);
  auto done = collect(*kernel, 2);
  EXPECT_EQ(done[0].op, &other);
  EXPECT_EQ(done[1].op, &receive);
  EXPECT_EQ(done[1].result, 1);

  kernel->start(receive);
  kernel->cancel(receive);
  EXPECT_EQ(collect(*kernel, 1)[0].result, -ECANCELED);
  EXPECT_FALSE(kernel->has_unsubmitted());
  kernel->close();
}

TEST(Uring, CancelsManyReceivesOfOneSocket) {
  test::socket_pair pair;
  auto kernel = small_ring(8);
  std::vector<operation> receives(100);
  std::vector<std::shared_ptr<test::message_buffer>> buffers;
  for (auto& op : receives) {
    buffers.push_back(std::make_shared<test::message_buffer>(64));
    op.request = test::receive_into(pair.fds[0], buffers.back());
    kernel->start(op);
  }
  kernel->enter();
  for (auto& op : receives)
    kernel->cancel(op);
  for (auto& done : collect(*kernel, receives.size()))
    EXPECT_EQ(done.result, -ECANCELED);
  kernel->close();
}

TEST(RefusingRing, AnswersEveryOperationWithItsErrorAndWakes) {
  auto kernel = make_refusing_ring(EPERM);
  operation op;
  kernel->start(op);
  auto done = collect(*kernel, 1);
  EXPECT_EQ(done[0].result, -EPERM);
  kernel->wake();
  kernel->wait();
  kernel->close();
}

} // namespace
} // namespace terrace::runtime
