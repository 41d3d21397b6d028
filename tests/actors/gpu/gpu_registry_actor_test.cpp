#include "actors/gpu/daemon/device_actor.hpp"

#include "tests/support/runtime_fixture.hpp"
#include "transfer/mover_messages.hpp"

#include <gtest/gtest.h>

#include <set>

namespace terrace::actors {
namespace {

class Devices : public ::testing::Test {
 protected:
  explicit Devices(bool enabled = true) {
    devices_arguments arguments;
    arguments.enabled = enabled;
    arguments.board = board_;
    arguments.records = records_;
    arguments.place = [pool = system_.pool()]() mutable { return pool.place(); };
    devices_ = spawn_devices(*system_, std::move(arguments));
  }
  ~Devices() {
    caf::anon_send_exit(devices_, caf::exit_reason::user_shutdown);
    devices_ = nullptr;
  }
  open_device_answer open(const std::string& name, bool keep = false) {
    caf::scoped_actor self(*system_);
    open_device_answer answer;
    self->request(devices_, caf::infinite, open_device_request{name, keep})
        .receive([&](open_device_answer& got) { answer = got; }, [](const caf::error&) { FAIL(); });
    return answer;
  }

  test::runtime_system system_{1};
  std::shared_ptr<metrics::device_board> board_ = std::make_shared<metrics::device_board>();
  std::shared_ptr<gpu::direct_records> records_ = std::make_shared<gpu::direct_records>();
  gpu_registry_actor devices_;
};

TEST_F(Devices, ADeviceHasOneActorHoweverItIsWritten) {
  auto first = open("GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00");
  ASSERT_EQ(first.failure.code, errc::ok) << first.failure.text;
  EXPECT_EQ(first.device, open("A0A1A2A3-A4A5-A6A7-A8A9-AAABACADAE00").device);
  EXPECT_NE(first.device, open("host").device);
  EXPECT_EQ(board_->all().size(), 2U);
  EXPECT_EQ(open("cuda:0").failure.code, errc::bad_request);
}

TEST_F(Devices, MadeUpNamesAreForgottenForOthers) {
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(open("a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae" + std::to_string(10 + i % 80)).failure.code,
              errc::ok);
  EXPECT_LE(board_->all().size(), 32U);
}

TEST_F(Devices, WhatIsHeldAgainstAForgottenOneIsNotForgotten) {
  const std::string name = "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00";
  auto first = open(name).device;
  records_->of(name)->begin(1);
  records_->of(name)->lost(1);
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(open("a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae" + std::to_string(10 + i % 80)).failure.code,
              errc::ok);
  EXPECT_NE(open(name).device, first) << "it was forgotten";
  EXPECT_EQ(records_->of(name)->losses(), 1U);
  EXPECT_LE(records_->size(), 32U + 1U) << "of those that were made up nothing is kept";
}

TEST_F(Devices, TheOneOfATierIsNotForgotten) {
  auto kept = open("host", true).device;
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(open("a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae" + std::to_string(10 + i)).failure.code, errc::ok);
  EXPECT_EQ(open("host").device, kept);
}

TEST_F(Devices, MemoryIsForgottenByThoseThatHaveNoProcessAtOnce) {
  auto segment = std::make_shared<const arena>(arena::create({.bytes = 1 << 20}).value());
  caf::scoped_actor self(*system_);
  auto forget = [&] {
    bool answered = false;
    self->request(devices_, caf::infinite, forget_memory{segment->data()})
        .receive([&](const retire_answer& done) { answered = done.failure.code == errc::ok; },
                 [](const caf::error&) {});
    return answered;
  };
  open("host");
  self->send(devices_, add_memory{segment});
  open("GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00"); // is told, too
  EXPECT_TRUE(forget());
  EXPECT_TRUE(forget()) << "nobody knows it any more";
  EXPECT_EQ(segment.use_count(), 1);
}

class NoDevices : public Devices {
 protected:
  NoDevices() : Devices(false) {}
};
TEST_F(NoDevices, AreUnsupportedIfTheyAreSwitchedOff) {
  EXPECT_EQ(open("host").failure.code, errc::unsupported);
  EXPECT_TRUE(board_->all().empty());
}

} // namespace
} // namespace terrace::actors
