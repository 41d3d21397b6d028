#include "actors/gpu/stream_actor.hpp"

#include "gpu/host/host_device.hpp"
#include "tests/support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <future>

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

} // namespace
} // namespace terrace::actors
