// A client's bell, with a ring that the test plays.
#include "actors/connection/counter_wakeup.hpp"

#include "actors/connection/frame_channel.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace terrace::actors {
namespace {

/// Remembers what is submitted.
class listening_port final : public runtime::io_port {
 public:
  runtime::operation_id submit(runtime::io_request request, const caf::strong_actor_ptr&,
                               uint64_t tag) override {
    EXPECT_EQ(tag, io_tag::bell);
    submitted.push_back(std::move(request));
    return static_cast<runtime::operation_id>(submitted.size());
  }
  void cancel(runtime::operation_id id) override { cancelled.push_back(id); }
  int register_arena(void*, uint64_t) override { return -1; }
  void unregister_arena(int, uint64_t) override {}
  runtime::ring_features features() const override { return {}; }

  std::vector<runtime::io_request> submitted;
  std::vector<runtime::operation_id> cancelled;
};

/// The kernel's number of an eventfd.
std::string identity(const unique_fd& event) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(event.get()));
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("eventfd-id"))
      return line;
  return {};
}

class CounterWakeup : public ::testing::Test {
 protected:
  runtime::io_code last() const { return port_.submitted.back().code; }

  listening_port port_;
  counter_wakeup bell_{port_, nullptr};
};

TEST_F(CounterWakeup, IsMadeWhenItIsAskedForAndIsTheSameFromThenOn) {
  EXPECT_FALSE(bell_.hangs());
  EXPECT_TRUE(port_.submitted.empty());
  auto first = bell_.descriptor(), second = bell_.descriptor();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(bell_.hangs());
  EXPECT_NE(first->get(), second->get());
  EXPECT_EQ(identity(*first), identity(*second));
  ASSERT_EQ(port_.submitted.size(), 1U) << "one read, however often it is given";
  EXPECT_EQ(last(), runtime::io_code::read);
  EXPECT_EQ(port_.submitted[0].length, 8U);
}

TEST_F(CounterWakeup, EachRingIsHeardAndThenItListensAgain) {
  auto mine = bell_.descriptor();
  EXPECT_TRUE(bell_.heard(8));
  EXPECT_EQ(port_.submitted.size(), 2U);
  EXPECT_EQ(last(), runtime::io_code::read);
  EXPECT_FALSE(bell_.heard(-EINTR));
  EXPECT_EQ(last(), runtime::io_code::read);
  EXPECT_EQ(port_.submitted.size(), 3U);
}

TEST_F(CounterWakeup, OneThatTheClientHasMadeNonBlockingIsPolled) {
  auto mine = bell_.descriptor();
  EXPECT_FALSE(bell_.heard(-EAGAIN));
  EXPECT_EQ(last(), runtime::io_code::poll);
  EXPECT_FALSE(bell_.heard(1)) << "it is read first: otherwise the poll would end again at once";
  EXPECT_EQ(last(), runtime::io_code::read);
  EXPECT_TRUE(bell_.heard(8));
  EXPECT_EQ(port_.submitted.size(), 4U);
}

TEST_F(CounterWakeup, AReadThatFailsIsTriedAgainUnlessItWasCancelled) {
  auto mine = bell_.descriptor();
  EXPECT_FALSE(bell_.heard(-ENOMEM));
  EXPECT_EQ(last(), runtime::io_code::poll);
  EXPECT_FALSE(bell_.heard(-ECANCELED)) << "the ring ends";
  EXPECT_EQ(port_.submitted.size(), 2U);
}

TEST_F(CounterWakeup, TakenDownItListensNoMore) {
  auto mine = bell_.descriptor();
  bell_.remove();
  EXPECT_EQ(port_.cancelled, std::vector{runtime::operation_id{1}});
  EXPECT_FALSE(bell_.hangs());
  EXPECT_FALSE(bell_.heard(8)) << "it came before the cancellation";
  EXPECT_FALSE(bell_.heard(-ECANCELED));
  EXPECT_EQ(port_.submitted.size(), 1U);
  EXPECT_TRUE(port_.submitted[0].keep_alive) << "the kernel may still write";
}

TEST_F(CounterWakeup, WithoutDescriptorsItIsRefusedAndCanBeAskedForLater) {
  rlimit all{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &all), 0);
  auto lowest = static_cast<rlim_t>(unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get());
  for (rlim_t left : {0, 1}) { // none for the eventfd; none for its duplicate
    rlimit few{lowest + left, all.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    auto none = bell_.descriptor();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &all), 0);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, errc::busy);
    EXPECT_FALSE(bell_.hangs());
  }
  EXPECT_TRUE(bell_.descriptor());
}

} // namespace
} // namespace terrace::actors
