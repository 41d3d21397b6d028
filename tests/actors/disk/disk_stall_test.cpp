// A device that does not answer: the tier is degraded, requests are answered without it, and what the kernel still has
// stays untouched until it gives it back.
#include "disk_fixture.hpp"

#include <cerrno>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace {

struct DiskStall : disk_fixture {
  DiskStall() { start({.host_objects = 32, .disk_objects = 85}); }

  /// Five ticks of the watch: more than `stall_after`, whenever the operation began.
  void wait_out() {
    settle();
    for (int i = 0; i < 5; ++i)
      advance(2500ms);
  }
  /// What is written or synced for the index comes back when `release_those` says so.
  void hold_the_index() {
    uint64_t metadata = paths->file(0)->extents_begin();
    ring.hold_those([metadata](const runtime::io_request& request) {
      return request.code == io_code::fsync || (request.code == io_code::write && request.offset < metadata);
    });
  }
  uint64_t host_bytes_used() { return report(group->host).usage.used_bytes; }
  double metric(const std::string& name) {
    struct summing : metrics::sample_sink {
      std::string wanted;
      double sum = 0;
      void counter(std::string_view name, std::string_view, const metrics::labels&, double value) override {
        sum += name == wanted ? value : 0;
      }
      void gauge(std::string_view name, std::string_view, const metrics::labels&, double value) override {
        sum += name == wanted ? value : 0;
      }
      void histogram(std::string_view, std::string_view, const metrics::labels&,
                     const metrics::latency_histogram::snapshot&) override {}
    } sink;
    sink.wanted = name;
    probes.paths[0].disk->collect({}, sink);
    return sink.sum;
  }
};

} // namespace

TEST_F(DiskStall, AReadThatDoesNotComeBackEndsItsLoadWithoutIt) {
  on_disk(0, 4);
  ring.hold(io_code::read);
  auto loaded = begin_load(0, 4);
  settle();
  advance(10s); // one tick: the operation may have begun just before
  EXPECT_FALSE(*loaded);
  EXPECT_TRUE(service->reads());
  wait_out();
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->failure.code, errc::ok) << (*loaded)->failure.text;
  EXPECT_EQ((*loaded)->chunks, 0u);
  EXPECT_FALSE(service->reads());
  EXPECT_FALSE(service->writes());
  EXPECT_NE(service->reason().find("4 operations have not come back"), std::string::npos)
      << service->reason();
  EXPECT_EQ(disk_warnings.size(), 1u);
  EXPECT_EQ(metric("terrace_disk_stalls_total"), 4);
  EXPECT_EQ(metric("terrace_disk_stalled"), 4);
}

TEST_F(DiskStall, TheMemoryOfAStalledReadStaysItsOwnUntilTheKernelGivesItBack) {
  on_disk(0, 4);
  uint64_t before = host_bytes_used();
  ring.hold(io_code::read);
  auto loaded = begin_load(0, 4);
  wait_out();
  wait_out();
  ASSERT_TRUE(*loaded);
  EXPECT_EQ(host_bytes_used(), before + 4 * physical);
  EXPECT_EQ(store(20, 28).stored_chunks, 28u); // all that is left, and not a byte of those four
  EXPECT_EQ(load(20, 28).chunks, 28u);
  EXPECT_TRUE(delivered(47));
  ring.release(io_code::read);
  settle();
  EXPECT_EQ(host_bytes_used(), 28 * physical);
  EXPECT_EQ(metric("terrace_disk_stalled"), 0);
}

TEST_F(DiskStall, OthersDoNotWaitForAStalledRead) {
  on_disk(0, 2);
  ring.hold(io_code::read);
  auto first = begin_load(0, 2);
  settle();
  auto second = begin_load(0, 2); // waits for the first
  auto stored = begin_store(0, 2);
  settle();
  EXPECT_FALSE(*second);
  EXPECT_FALSE(*stored);
  wait_out();
  wait_out();
  ASSERT_TRUE(*second);
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->stored_chunks, 2u); // the same keys, in other memory
  EXPECT_EQ(load(0, 2).chunks, 2u);
  EXPECT_TRUE(delivered(1));
  ring.release(io_code::read);
  settle();
  EXPECT_EQ(load(0, 2).chunks, 2u); // what came late overwrote nothing
  EXPECT_TRUE(delivered(1));
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(DiskStall, TheTierReturnsWhenTheKernelHasGivenEverythingBack) {
  on_disk(0, 4);
  ring.hold(io_code::read);
  begin_load(0, 4);
  wait_out();
  uint64_t reads = ring.started(io_code::read);
  for (int second = 0; second < 100; ++second)
    advance(1s);
  EXPECT_EQ(ring.started(io_code::read), reads); // it is not asked while it hangs
  EXPECT_FALSE(service->reads());
  ring.release(io_code::read);
  settle();
  EXPECT_EQ(ring.started(io_code::read), reads + 1); // the superblock, at once: the pause was over
  EXPECT_TRUE(service->reads());
  EXPECT_TRUE(service->reason().empty()) << service->reason();
  EXPECT_EQ(load(0, 4).chunks, 4u);
  EXPECT_TRUE(delivered(3));
  EXPECT_EQ(disk_warnings.size(), 2u);
}

TEST_F(DiskStall, WhatComesBackDuringThePauseIsTriedWhenThePauseIsOver) {
  on_disk(0, 1);
  ring.hold(io_code::read);
  begin_load(0, 1);
  wait_out();
  ring.release(io_code::read);
  settle();
  EXPECT_FALSE(service->reads());
  EXPECT_NE(service->reason().find("tried again every 1000 ms"), std::string::npos) << service->reason();
  advance(1s);
  EXPECT_TRUE(service->reads());
}

TEST_F(DiskStall, AStalledWriteKeepsItsObjectAndReadsGoOn) {
  on_disk(0, 4);
  ring.hold(io_code::write);
  EXPECT_EQ(store(10, 2).stored_chunks, 2u);
  wait_out();
  EXPECT_FALSE(service->writes());
  EXPECT_TRUE(service->reads());
  EXPECT_EQ(present(disk_tier(), 10, 2), 0u);
  EXPECT_EQ(report(group->host).held_objects, 2u); // the kernel may still read them
  EXPECT_EQ(load(0, 4).chunks, 4u);
  EXPECT_EQ(store(20, 2).stored_chunks, 2u);
  uint64_t writes = ring.started(io_code::write);
  wait_out();
  EXPECT_EQ(ring.started(io_code::write), writes);
  ring.release(io_code::write);
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_TRUE(service->writes());
  EXPECT_EQ(store(30, 2).stored_chunks, 2u);
  EXPECT_EQ(present(disk_tier(), 30, 2), 2u);
  EXPECT_TRUE(service->reason().empty());
  EXPECT_EQ(metric("terrace_disk_degradations_total"), 1);
}

TEST_F(DiskStall, ATrialThatStallsIsAFailedTrial) {
  ring.fail_next(io_code::write, ENOSPC);
  store(0, 1);
  advance(1s);
  EXPECT_TRUE(service->writes());
  ring.hold(io_code::write);
  store(1, 1);
  wait_out();
  EXPECT_FALSE(service->writes());
  EXPECT_NE(service->reason().find("1 operation has not come back"), std::string::npos) << service->reason();
  ring.release(io_code::write);
  advance(2s);
  store(2, 1);
  EXPECT_EQ(present(disk_tier(), 2, 1), 1u);
  EXPECT_EQ(disk_warnings.size(), 2u);
}

TEST_F(DiskStall, AJournalThatHangsTakesWritingOutOfServiceUntilItsOperationIsBack) {
  on_disk(0, 2);
  hold_the_index();
  EXPECT_EQ(store(10, 2).stored_chunks, 2u);
  EXPECT_EQ(present(disk_tier(), 10, 2), 2u); // nobody who stores waits for the journal
  advance(10s);
  EXPECT_TRUE(service->writes());
  wait_out();
  EXPECT_FALSE(service->writes());
  EXPECT_TRUE(service->reads());
  EXPECT_NE(service->reason().find("1 operation has not come back"), std::string::npos) << service->reason();
  EXPECT_EQ(metric("terrace_disk_stalled"), 1);
  uint64_t writes = ring.started(io_code::write);
  EXPECT_EQ(store(20, 2).stored_chunks, 2u);
  for (int second = 0; second < 100; ++second)
    advance(1s);
  EXPECT_EQ(ring.started(io_code::write), writes);
  EXPECT_EQ(load(0, 2).chunks, 2u);
  ring.release_those();
  settle();
  EXPECT_TRUE(service->writes()); // the pause was over
  EXPECT_EQ(metric("terrace_disk_stalled"), 0);
  EXPECT_EQ(store(30, 2).stored_chunks, 2u);
  EXPECT_EQ(present(disk_tier(), 30, 2), 2u);
  EXPECT_TRUE(service->reason().empty()) << service->reason();
  EXPECT_EQ(disk_warnings.size(), 2u);
  restart();
  EXPECT_EQ(present(disk_tier(), 10, 2), 2u);
  EXPECT_EQ(present(disk_tier(), 30, 2), 2u);
}

TEST_F(DiskStall, AClearDoesNotWaitForAJournalThatHangs) {
  on_disk(0, 2);
  hold_the_index();
  auto waiting = ask<clear_answer>(disk_tier(), clear_request{});
  settle();
  EXPECT_FALSE(*waiting);
  wait_out();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::internal);
  EXPECT_NE((*waiting)->failure.text.find("may be back"), std::string::npos) << (*waiting)->failure.text;
  EXPECT_EQ(clear(disk_tier()).failure.code, errc::internal); // and the next one fails at once
  ring.release_those();
  settle();
  EXPECT_EQ(clear(disk_tier()).failure.code, errc::ok);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 2), 0u);
}

TEST_F(DiskStall, AQuietDeviceHasNoTimer) {
  on_disk(0, 2);
  wait_out();
  EXPECT_EQ(ring.in_flight(io_code::timeout), 0u);
}

TEST_F(DiskStall, EndsWhileOperationsAreStalled) {
  on_disk(0, 2);
  ring.hold(io_code::read);
  begin_load(0, 2);
  wait_out();
  EXPECT_FALSE(service->reads());
  // TearDown ends the actors, with the operations still in the ring.
}
