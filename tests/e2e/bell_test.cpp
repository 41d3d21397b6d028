// Stores that wait for a counter of their client: how they end, and what a client may do with its bell. On
// the device in host memory; device_region_test.cpp has the others.
#include "gpu/generation_page.hpp"
#include "gpu_daemon.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/scrape.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include <fcntl.h>

namespace terrace::e2e {
namespace {

class Bell : public ::testing::Test {
 protected:
  Bell() {
    gpu_daemon::faults("");
    region_ = client_->register_device_region(memory_.shared(), patiently()).value();
    counters_ = client_->register_region(page_.descriptor(), page_.memory().size(), patiently()).value();
  }
  ~Bell() override { std::filesystem::remove(gpu_daemon::script()); }

  client::ticket<client::store_result> store_after(uint32_t slot, client::deadline until = patiently()) {
    auto request = client_.store_of(chain_);
    request.region = &region_;
    request.runs = runs_;
    request.after = client::generation{&counters_, slot * sizeof(uint32_t), 1};
    auto sent = client_->async().store(request, until).value();
    waiting(1);
    return sent;
  }
  /// Waits until this many stores wait, according to the daemon's metrics.
  void waiting(double expected) {
    EXPECT_TRUE(eventually([&] { return metric("terrace_connection_awaited_counters") == expected; }));
  }
  double metric(const std::string& name) const {
    return test::number_behind(test::scrape(port_), name + "{group=\"default\"}");
  }
  static daemon_options options(uint16_t port) {
    auto made = gpu_daemon::options_of("");
    made.metrics = "127.0.0.1:" + std::to_string(port);
    return made;
  }
  void expect_end(client::ticket<client::store_result>& of, errc code) {
    auto ended = of.wait(patiently());
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, code) << ended.error().text;
    waiting(0);
    EXPECT_EQ(client_.lookup(chain_).found_chunks, 0U);
  }
  void expect_stored(client::ticket<client::store_result>& of) {
    auto stored = of.wait(patiently());
    ASSERT_TRUE(stored) << stored.error().text;
    EXPECT_EQ(stored->stored_chunks, chain_.size());
    waiting(0);
  }

  uint16_t port_ = test::free_port();
  daemon_under_test daemon_{options(port_)};
  tester client_{daemon_.socket()};
  engine_memory memory_{device_kind::host, region_objects* object_bytes};
  gpu::generation_page page_ = gpu::generation_page::make(16).value();
  client::registered_region region_, counters_;
  client::bell bell_ = client_->bell(patiently()).value();
  std::vector<digest> chain_ = chain_of(1, 4);
  std::vector<client::run> runs_ = interleaved(4);
};

// ---- how a wait ends ----

TEST_F(Bell, AStoreGoesOnWhenItHasRung) {
  auto waits = store_after(0);
  memory_.write(laid_out(chain_, runs_));
  page_.write({0, 1});
  bell_.ring();
  expect_stored(waits);
  EXPECT_EQ(client_.load_and_check(chain_), chain_.size());
  EXPECT_GE(metric("terrace_connection_rings_total"), 1);
}

TEST_F(Bell, AnyRingLooksAtAllCounters) {
  auto first = store_after(0);
  chain_ = chain_of(2, 4);
  auto request = client_.store_of(chain_);
  request.region = &region_;
  request.runs = runs_;
  request.after = client::generation{&counters_, 60, 1};
  auto second = client_->async().store(request, patiently()).value();
  waiting(2);
  page_.write({15, 1});
  page_.write({0, 1});
  bell_.ring();
  expect_stored(first);
  expect_stored(second);
}

TEST_F(Bell, WithACancelledRequest) {
  auto waits = store_after(0);
  EXPECT_TRUE(waits.cancel(patiently()).value());
  expect_end(waits, errc::cancelled);
  EXPECT_EQ(page_.value(0), 0U) << "the page is the client's";
  page_.write({0, 1});
  bell_.ring(); // no store waits
  EXPECT_EQ(client_.lookup(chain_).found_chunks, 0U);
}

TEST_F(Bell, WithTheDeadlineOfTheRequest) {
  auto waits = store_after(0, client::within(std::chrono::milliseconds(200)));
  expect_end(waits, errc::deadline);
}

TEST_F(Bell, WithTheRegionOfItsCounter) {
  auto waits = store_after(0);
  ASSERT_TRUE(counters_.unregister(patiently()));
  expect_end(waits, errc::gone);
}

TEST_F(Bell, WithTheProcessOfTheDevice) {
  auto waits = store_after(0);
  ::kill(device_of(client_).pid, SIGKILL);
  expect_end(waits, errc::gone);
  EXPECT_TRUE(region_.unregister(patiently()));
  region_ = client_->register_device_region(memory_.shared(), patiently()).value();
  waits = store_after(0);
  page_.write({0, 1});
  bell_.ring();
  expect_stored(waits);
}

TEST_F(Bell, WithItsClient) {
  store_after(0);
  client_ = tester(daemon_.socket(), "witness");
  waiting(0);
  EXPECT_TRUE(eventually([&] { return device_of(client_).regions == 0; }));
}

TEST_F(Bell, UnregisteringTheRegionThatIsReadWaitsForTheStore) {
  auto waits = store_after(0);
  std::thread engine([&] {
    page_.write({0, 1});
    bell_.ring();
  });
  EXPECT_TRUE(region_.unregister(patiently()));
  EXPECT_TRUE(waits.ready());
  engine.join();
  expect_stored(waits);
}

// ---- what a client may do with it ----

TEST_F(Bell, IsTheSameHoweverOftenItIsAskedFor) {
  auto open = [&] {
    auto folder = std::filesystem::directory_iterator("/proc/" + std::to_string(daemon_.pid()) + "/fd");
    return std::distance(begin(folder), end(folder));
  };
  test::raw_client raw(daemon_.socket());
  ASSERT_TRUE(raw.greet());
  auto ask = [&](uint64_t id) {
    raw.send(protocol::kind::bell, id, [](auto& body) { return wire::CreateBell(body); });
    auto said = raw.receive();
    ASSERT_TRUE(said);
    EXPECT_EQ(said->code(), errc::ok) << said->text();
  };
  ask(2);
  auto before = open();
  for (uint64_t id = 3; id < 200; ++id)
    ask(id);
  EXPECT_LT(open(), before + 20);
}

TEST_F(Bell, AFloodOfRingsHoldsNobodyUp) {
  auto waits = store_after(0);
  std::atomic<bool> over = false;
  std::thread flood([&] {
    while (!over)
      bell_.ring();
  });
  tester other(daemon_.socket(), "other");
  auto theirs = chain_of(7, 8);
  for (int i = 0; i < 50; ++i) {
    other.store(theirs);
    EXPECT_EQ(other.load_and_check(theirs), theirs.size());
  }
  EXPECT_EQ(client_.lookup(theirs).found_chunks, theirs.size()) << "its own requests are served, too";
  page_.write({0, 1});
  expect_stored(waits);
  over = true;
  flood.join();
}

TEST_F(Bell, IsHeardWhateverTheClientDoesWithIt) {
  int bell = bell_.descriptor();
  auto rings_after = [&](auto&& abuse) {
    auto waits = store_after(0);
    abuse();
    waiting(1);
    page_.write({0, 1});
    bell_.ring();
    expect_stored(waits);
    page_.write({0, 0});
    chain_ = chain_of(chain_.front().bytes[0] + 100, 4);
  };
  rings_after([&] { ASSERT_EQ(::fcntl(bell, F_SETFL, O_NONBLOCK), 0); });
  rings_after([&] {
    bell_.ring();
    uint64_t stolen = 0;
    (void) !::read(bell, &stolen, sizeof stolen);
  });
  rings_after([&] { ASSERT_EQ(::fcntl(bell, F_SETFL, 0), 0); });
  rings_after([&] {
    uint64_t most = UINT64_MAX;
    EXPECT_EQ(::write(bell, &most, sizeof most), -1);
    EXPECT_EQ(errno, EINVAL);
    --most;
    EXPECT_EQ(::write(bell, &most, sizeof most), 8);
  });
  // The bell is closed: nobody rings, and the wait ends like any other.
  auto waits = store_after(0);
  {
    unique_fd closed(::open("/dev/null", O_RDWR | O_CLOEXEC));
    bell_.becomes(closed);
  }
  page_.write({0, 1});
  bell_.ring();
  EXPECT_EQ(client_.lookup(chain_).found_chunks, 0U);
  EXPECT_TRUE(waits.cancel(patiently()).value());
  expect_end(waits, errc::cancelled);
  EXPECT_EQ(client_.store(chain_of(50, 4)), 4U);
}

TEST_F(Bell, ACounterThatGoesBackIsWaitedForAgain) {
  auto waits = store_after(0);
  page_.write({0, 1});
  page_.write({0, 0});
  bell_.ring();
  waiting(1);
  page_.write({0, 1});
  bell_.ring();
  expect_stored(waits);
}

} // namespace
} // namespace terrace::e2e
