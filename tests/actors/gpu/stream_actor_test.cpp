#include "actors/gpu/child/stream_actor.hpp"

#include "gpu/host/host_engine.hpp"
#include "tests/support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

namespace terrace::actors {
namespace {

using stream_overs = std::promise<stream_over>;

stream_owner::behavior_type owner_of(stream_owner::pointer,
                                     std::shared_ptr<std::deque<stream_overs>> expected) {
  return {[expected](const stream_over& over) {
    expected->front().set_value(over);
    expected->pop_front();
  }};
}

class StreamActor : public ::testing::Test {
 protected:
  StreamActor() {
    device_ = gpu::make_host_device({.fault = [this] { return fault_; }}).value();
    region_ = device_->allocate(4096).value();
    staging_ = device_->allocate(4096).value();
    owner_ = system_->spawn(owner_of, expected_);
    stream_ = spawn_stream(*system_, system_.pool().at(0), device_, gpu::direction::store, owner_).value();
  }
  ~StreamActor() {
    caf::anon_send_exit(stream_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(owner_, caf::exit_reason::user_shutdown);
    stream_ = nullptr;
    owner_ = nullptr;
  }
  std::future<stream_over> next() { return expected_->emplace_back().get_future(); }
  test::runtime_system system_{1};
  std::optional<error> fault_;
  std::shared_ptr<std::deque<stream_overs>> expected_ = std::make_shared<std::deque<stream_overs>>();
  std::shared_ptr<gpu::device> device_;
  std::shared_ptr<gpu::memory> region_, staging_;
  stream_owner owner_;
  stream_actor stream_;
};

TEST_F(StreamActor, TellsOfEachCopyOnce) {
  auto first = next(), second = next();
  caf::anon_send(stream_, stream_copy{5, region_, staging_, {{0, 0, 4096, 0, 0, 1}}});
  auto over = first.get();
  EXPECT_EQ(over.id, 5U);
  EXPECT_EQ(over.failure.code, errc::ok);
  caf::anon_send(stream_, stream_copy{6, region_, staging_, {{1, 0, 4096, 0, 0, 1}}}); // beyond the end
  over = second.get();
  EXPECT_EQ(over.id, 6U);
  EXPECT_EQ(over.failure.code, errc::bad_request);
}

TEST_F(StreamActor, AFailedCopyIsToldWithItsReason) {
  fault_ = error{errc::internal, "by the test"};
  auto first = next();
  caf::anon_send(stream_, stream_copy{5, region_, staging_, {{0, 0, 4096, 0, 0, 1}}});
  EXPECT_EQ(first.get().failure.text, "by the test");
}

/// Copies at once, and lets the test into each of its calls.
class called_device : public gpu::device {
 public:
  using call = std::function<void(uint64_t ticket)>;
  explicit called_device(call on_issue) : on_issue_(std::move(on_issue)) {}

  std::string name() const override { return "called"; }
  result<std::shared_ptr<gpu::memory>> allocate(uint64_t) override { return std::make_shared<page>(); }
  result<std::shared_ptr<gpu::memory>> pin(std::shared_ptr<const mapping>) override { return none(); }
  result<std::shared_ptr<gpu::memory>> pin_for_reading(std::shared_ptr<const mapping>, uint64_t,
                                                       uint64_t) override {
    return none();
  }
  result<std::shared_ptr<gpu::memory>> import(gpu::memory_handle) override { return none(); }
  result<std::shared_ptr<gpu::attached_page>> attach(std::shared_ptr<const gpu::generation_page>) override {
    return none();
  }
  result<std::unique_ptr<gpu::copy_engine>>
  make_engine(std::shared_ptr<gpu::completion_queue> completions) override {
    return std::make_unique<engine>(on_issue_, std::move(completions));
  }

 private:
  static tl::unexpected<error> none() { return fail(errc::unsupported, "not by this device"); }
  struct page : gpu::memory {
    uint64_t bytes() const override { return 4096; }
    result<gpu::memory_handle> share() const override { return none(); }
  };
  class engine : public gpu::copy_engine {
   public:
    engine(call on_issue, std::shared_ptr<gpu::completion_queue> completions)
        : on_issue_(std::move(on_issue)), completions_(std::move(completions)) {}
    result<void> issue(const step& wanted) override {
      on_issue_(wanted.ticket);
      completions_->push({wanted.ticket, {}});
      return {};
    }
    result<void> check() override { return {}; }

   private:
    call on_issue_;
    std::shared_ptr<gpu::completion_queue> completions_;
  };
  call on_issue_;
};

/// A driver's calls for a copy may take as long as the copy.
TEST_F(StreamActor, TellsThatACopyIsOverBeforeItBeginsTheOneThatWaitsBehindIt) {
  std::promise<void> both_sent, first_told;
  auto told = first_told.get_future();
  bool in_time = false;
  auto device = std::make_shared<called_device>([&, sent = both_sent.get_future().share()](uint64_t ticket) {
    if (ticket == 1)
      sent.wait();
    else
      in_time = told.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  });
  auto first = next(), second = next();
  auto owner = system_->spawn<caf::detached>(owner_of, expected_); // the only worker waits in the device
  auto stream = spawn_stream(*system_, system_.pool().at(0), device, gpu::direction::store, owner).value();
  std::thread tells([&] {
    first.wait();
    first_told.set_value();
  });
  auto memory = device->allocate(4096).value();
  for (uint64_t id : {5, 6})
    caf::anon_send(stream, stream_copy{id, memory, memory, {{0, 0, 4096, 0, 0, 1}}});
  both_sent.set_value();
  tells.join();
  EXPECT_EQ(second.get().id, 6U);
  EXPECT_TRUE(in_time);
  caf::anon_send_exit(stream, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(owner, caf::exit_reason::user_shutdown);
}

} // namespace
} // namespace terrace::actors
