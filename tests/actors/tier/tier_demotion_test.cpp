// Host memory whose victims are written to the disk before they leave.
#include "actors/tier/tier_shell.hpp"

#include "group_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace {

struct TierDemotion : group_fixture {
  TierDemotion() { begin(demotion_mode::write_back); }
  void begin(demotion_mode mode, admission_rules admission = {}) {
    start({.host_objects = 8,
           .disk_objects = 64,
           .window_objects = 8,
           .admission = admission,
           .demotion = mode});
  }
  void begin_selective() {
    TearDown();
    folder.clear();
    begin(demotion_mode::selective);
  }
  write_down_answer write_down(std::chrono::steady_clock::time_point until) {
    auto answer = ask<write_down_answer>(group->host, write_down_request{until});
    settle();
    EXPECT_TRUE(*answer);
    return answer->value_or(write_down_answer{});
  }
  void wait_out() { // a device that does not answer
    settle();
    for (int i = 0; i < 5; ++i)
      advance(2500ms);
  }
  double metric(const std::string& name, const std::string& reason = {}) {
    struct summing : metrics::sample_sink {
      std::string wanted, reason;
      double sum = 0;
      void add(std::string_view name, const metrics::labels& of, double value) {
        bool all = reason.empty() || (!of.empty() && of.back().second == reason);
        sum += name == wanted && all ? value : 0;
      }
      void counter(std::string_view name, std::string_view, const metrics::labels& of,
                   double value) override {
        add(name, of, value);
      }
      void gauge(std::string_view, std::string_view, const metrics::labels&, double) override {}
      void histogram(std::string_view name, std::string_view, const metrics::labels& of,
                     const metrics::histogram_snapshot& value) override {
        add(name, of, static_cast<double>(value.count()));
      }
    } sink;
    sink.wanted = name;
    sink.reason = reason;
    probes.host->collect({}, sink);
    return sink.sum;
  }
};

} // namespace

TEST_F(TierDemotion, NothingIsWrittenBeforeItIsEvicted) {
  store(0, 8);
  EXPECT_EQ(present(disk_tier(), 0, 8), 0u);
  EXPECT_EQ(store(100, 4).stored_chunks, 4u);
  EXPECT_EQ(present(group->host, 0, 8), 4u);
  EXPECT_EQ(present(disk_tier(), 4, 4), 4u) << "the end of the chain";
  EXPECT_EQ(load(0, 8).chunks, 8u);
  for (uint64_t n = 0; n < 8; ++n)
    EXPECT_TRUE(delivered(n)) << n;
  EXPECT_EQ(metric("terrace_tier_demoted_bytes_total"), metric("terrace_tier_demoted_total") * payload);
  EXPECT_GE(metric("terrace_tier_demotion_wait_seconds"), 1);
}

TEST_F(TierDemotion, AVictimThatIsUsedWhileItIsWrittenStays) {
  store(0, 8);
  ring.hold(io_code::write);
  auto stored = begin_store(100, 1);
  settle();
  EXPECT_FALSE(*stored) << "it waits for the victim";
  EXPECT_EQ(present(group->host, 0, 8), 8u);
  EXPECT_EQ(load(7, 1).chunks, 1u);
  EXPECT_TRUE(delivered(7));
  ring.release(io_code::write);
  settle();
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->stored_chunks, 1u);
  EXPECT_EQ(load(7, 1).chunks, 1u);
  EXPECT_TRUE(delivered(7));
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(TierDemotion, TheMemoryOfADiscardedVictimStaysUntilItIsWritten) {
  store(0, 8);
  ring.hold(io_code::write);
  auto stored = begin_store(100, 1);
  settle();
  forget_host(7, 1);
  EXPECT_EQ(present(group->host, 7, 1), 0u);
  EXPECT_EQ(host_used(), 8 * physical);
  EXPECT_FALSE(*stored);
  ring.release(io_code::write);
  settle();
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->stored_chunks, 1u);
  EXPECT_EQ(present(group->host, 0, 7), 7u) << "its memory was enough";
}

TEST_F(TierDemotion, AnObjectThatIsStoredAnewMeanwhileIsNotEvictedForTheOldOne) {
  store(0, 8);
  ring.hold(io_code::write);
  auto first = begin_store(100, 1);
  settle();
  forget_host(7, 1);
  forget_host(6, 1); // which is free at once
  auto anew = begin_store(7, 1);
  settle();
  ring.release(io_code::write);
  settle();
  ASSERT_TRUE(*first && *anew);
  EXPECT_EQ((*first)->stored_chunks, 1u);
  EXPECT_EQ((*anew)->failure.code, errc::ok);
  EXPECT_EQ(load(7, 1).chunks, 1u);
  EXPECT_TRUE(delivered(7));
  EXPECT_LE(host_used(), 8 * physical);
}

TEST_F(TierDemotion, ADeviceThatDoesNotAnswerIsNotWaitedForLong) {
  store(0, 8);
  ring.hold(io_code::write);
  auto stored = begin_store(100, 1);
  wait_out();
  wait_out();
  EXPECT_FALSE(*stored) << "all else is above the victim in its chain";
  ring.release(io_code::write);
  settle();
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->stored_chunks, 1u);
  EXPECT_GE(metric("terrace_tier_demotions_failed_total", "failed"), 1);
}

TEST_F(TierDemotion, WithoutADeviceVictimsAreLostAtOnce) {
  store(0, 4);
  store(50, 4);
  ring.hold(io_code::write);
  auto stored = begin_store(100, 1);
  wait_out();
  wait_out();
  settle();
  ASSERT_TRUE(*stored) << "the other chain's end left in place of the victim";
  EXPECT_EQ((*stored)->stored_chunks, 1u);
  EXPECT_GE(metric("terrace_tier_demotions_failed_total", "degraded"), 1);
  EXPECT_EQ(store(101, 2).stored_chunks, 2u);
  ring.release(io_code::write);
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(load(101, 2).chunks, 2u);
}

TEST_F(TierDemotion, ARoundWritesAllItsVictimsTogetherAndOnce) {
  store(0, 8);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  EXPECT_EQ(present(disk_tier(), 0, 8), 8u);
  EXPECT_EQ(store(200, 8).stored_chunks, 8u);
  EXPECT_EQ(load(0, 8).chunks, 8u); // which evicts the last ones
  double demoted = metric("terrace_tier_demoted_total");
  EXPECT_EQ(store(300, 8).stored_chunks, 8u); // and these were below already
  EXPECT_EQ(metric("terrace_tier_demoted_total"), demoted);
}

TEST_F(TierDemotion, AtTheEndAllIsWritten) {
  store(0, 8);
  auto done = write_down(std::chrono::steady_clock::time_point::max());
  EXPECT_TRUE(done.complete);
  EXPECT_EQ(present(disk_tier(), 0, 8), 8u);
  EXPECT_EQ(present(group->host, 0, 8), 8u);
  EXPECT_TRUE(write_down(std::chrono::steady_clock::time_point::max()).complete);
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(TierDemotion, AtTheEndOfItsTimeTheRestIsLost) {
  store(0, 8);
  auto done = write_down({});
  EXPECT_FALSE(done.complete);
  EXPECT_EQ(present(disk_tier(), 0, 8), 0u);
}

TEST_F(TierDemotion, WhatARuleDoesNotAdmitIsLost) {
  TearDown();
  folder.clear();
  begin(demotion_mode::write_back, {admission_rule::seen_twice, {}});
  store(0, 8);
  EXPECT_EQ(store(100, 4).stored_chunks, 4u);
  EXPECT_EQ(present(disk_tier(), 0, 8), 0u);
  EXPECT_GE(metric("terrace_tier_demotions_failed_total", "admission"), 4);
}

TEST_F(TierDemotion, AtTheSecondUseIfItIsSelective) {
  begin_selective();
  store(0, 6);
  EXPECT_EQ(present(disk_tier(), 0, 6), 0u);
  load(0, 3);
  EXPECT_EQ(present(disk_tier(), 0, 6), 3u);
  lookup(chain(0, 6), true);
  settle();
  EXPECT_EQ(present(disk_tier(), 0, 6), 6u);
  EXPECT_EQ(metric("terrace_tier_demoted_total"), 6);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  EXPECT_EQ(load(0, 6).chunks, 6u);
  EXPECT_EQ(metric("terrace_tier_demoted_total"), 6) << "what came from there is there";
}

TEST_F(TierDemotion, WhatLeavesBeforeItsSecondUseIsNotAdmitted) {
  begin_selective();
  store(0, 8);
  load(0, 4);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  auto once = why_gone(7), twice = why_gone(0);
  ASSERT_TRUE(once && twice);
  EXPECT_EQ(once->why, miss_reason::not_admitted);
  EXPECT_EQ(once->from, tier_kind::disk);
  EXPECT_EQ(once->refused, refusal_reason::second_use);
  EXPECT_EQ(twice->why, miss_reason::evicted) << "the disk has it";
}

TEST_F(TierDemotion, WhatTheDiskLosesAfterItsSecondUseIsWrittenAsItIsEvicted) {
  begin_selective();
  store(0, 8);
  load(0, 4);
  EXPECT_EQ(present(disk_tier(), 0, 8), 4u);
  forget(disk_tier(), 0, 4);
  load(0, 4);
  EXPECT_EQ(present(disk_tier(), 0, 8), 0u) << "a use looks once";
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  EXPECT_EQ(present(disk_tier(), 0, 8), 4u) << "what was not used is lost";
  EXPECT_EQ(load(0, 4).chunks, 4u);
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
  EXPECT_EQ(metric("terrace_tier_demoted_total"), 8);
}

TEST_F(TierDemotion, AUsedVictimThatCannotBeWrittenIsLost) {
  begin_selective();
  store(0, 8);
  load(0, 8);
  forget(disk_tier(), 0, 8);
  ring.hold(io_code::write);
  auto stored = begin_store(100, 1);
  wait_out();
  wait_out();
  EXPECT_FALSE(*stored) << "all else is above the victim in its chain";
  ring.release(io_code::write);
  settle();
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->stored_chunks, 1u);
  EXPECT_GE(metric("terrace_tier_demotions_failed_total", "failed"), 1);
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(TierDemotion, WhatCameFromTheDiskAndWasUsedReturnsThereIfItIsLostThere) {
  begin_selective();
  store(0, 4);
  load(0, 4);
  store(100, 8);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(load(0, 4).chunks, 4u);
  load(0, 4);
  EXPECT_EQ(metric("terrace_tier_demoted_total"), 4) << "it is there";
  forget(disk_tier(), 0, 4);
  store(200, 8);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
}
