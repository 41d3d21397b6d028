#include "simulated_io.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace terrace::simulation {
namespace simulated_io_test {

using runtime::completion;
using runtime::io_code;
using runtime::operation;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr uint64_t seeds = 100;

struct machine {
  explicit machine(uint64_t seed = 1) : events(seed), disk(seed, 1 << 20), io(events, disk, seed) {
    file = disk.open("/file", O_RDWR | O_CREAT);
    disk.fsync(disk.open("/", O_RDONLY));
  }

  operation write_of(std::string& text, uint64_t offset = 0) const {
    return {.request = {.code = io_code::write,
                        .fd = file,
                        .offset = offset,
                        .data = text.data(),
                        .length = static_cast<uint32_t>(text.size())}};
  }
  operation sync_of() const { return {.request = {.code = io_code::fsync, .fd = file}}; }
  /// Returns the operations in the order of their completions, with results.
  std::vector<completion> finish(size_t count) {
    std::vector<completion> all;
    std::array<completion, 1> one;
    while (all.size() < count) {
      if (io.reap(one) != 0)
        all.push_back(one[0]);
      else if (io.wait(); !io.has_ready())
        break;
    }
    return all;
  }
  int32_t result_of(operation op) {
    io.start(op);
    auto done = finish(1);
    return done.size() == 1 ? done[0].result : INT32_MIN;
  }
  std::string contents() {
    std::string text(100, '\0');
    int64_t count = disk.read(disk.open("/file", O_RDONLY), 0, std::as_writable_bytes(std::span(text)));
    return text.substr(0, static_cast<size_t>(count));
  }

  scheduler events;
  simulated_disk disk;
  simulated_io io;
  int file = -1;
};

TEST(SimulatedIo, AnOperationTakesEffectAndCompletesWhenTimePasses) {
  machine m;
  std::string text = "abc";
  auto op = m.write_of(text);
  m.io.start(op);
  EXPECT_TRUE(m.io.has_unsubmitted());
  EXPECT_FALSE(m.events.step()) << "nothing is submitted before the ring is entered";
  m.io.enter();
  EXPECT_FALSE(m.io.has_ready());
  EXPECT_EQ(m.contents(), "");
  EXPECT_TRUE(m.events.step());
  EXPECT_EQ(m.contents(), "abc");
  EXPECT_FALSE(m.io.has_ready()) << "the completion follows later";
  EXPECT_TRUE(m.events.step());
  EXPECT_TRUE(m.io.has_ready());
  auto done = m.finish(1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].op, &op);
  EXPECT_EQ(done[0].result, 3);
  EXPECT_EQ(m.io.in_flight(), 0U);
}

TEST(SimulatedIo, ReadsAndWritesByAnyForm) {
  machine m;
  std::string out = "abcdef", in(6, '\0');
  iovec to_write[] = {{out.data(), 2}, {out.data() + 2, 4}};
  iovec to_read[] = {{in.data(), 5}, {in.data() + 5, 1}};
  EXPECT_EQ(m.result_of({.request = {.code = io_code::writev, .fd = m.file, .data = to_write, .length = 2}}),
            6);
  EXPECT_EQ(m.result_of({.request = {.code = io_code::readv, .fd = m.file, .data = to_read, .length = 2}}),
            6);
  EXPECT_EQ(in, out);
  in.assign(6, '\0');
  EXPECT_EQ(
      m.result_of(
          {.request = {.code = io_code::read, .fd = m.file, .offset = 4, .data = in.data(), .length = 6}}),
      2)
      << "the file ends there";
  EXPECT_EQ(m.result_of(m.sync_of()), 0);
  EXPECT_EQ(m.result_of({.request = {.code = io_code::nop}}), 0);
}

TEST(SimulatedIo, ExaminesAFileByItsName) {
  machine m;
  std::string text = "abc";
  EXPECT_EQ(m.result_of(m.write_of(text)), 3);
  struct statx seen {};
  operation op{.request = {.code = io_code::statx, .data = &seen, .path = "/file"}};
  EXPECT_EQ(m.result_of(op), 0);
  EXPECT_EQ(seen.stx_size, 3U);
  EXPECT_NE(seen.stx_ino, 0U);
  EXPECT_TRUE(S_ISREG(seen.stx_mode));
  op.request.path = "/missing";
  EXPECT_EQ(m.result_of(op), -ENOENT);
}

TEST(SimulatedIo, RefusesAsTheKernelDoes) {
  machine m;
  EXPECT_EQ(m.result_of({.request = {.code = io_code::read, .fd = 99}}), -EBADF);
  EXPECT_EQ(m.result_of({.request = {.code = io_code::fsync, .fd = 99}}), -EBADF);
  EXPECT_EQ(m.result_of({.request = {.code = io_code::accept, .fd = 99}}), -EBADF);
  EXPECT_EQ(m.result_of({.request = {.code = io_code::recvmsg, .fd = m.file}}), -ENOTSOCK);
  EXPECT_EQ(m.result_of({.request = {.code = io_code::poll, .fd = m.file, .events = POLLIN}}), POLLIN);
}

TEST(SimulatedIo, WritesHappenAndCompleteInAnyOrder) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    machine m(seed);
    std::string a = "a", b = "b";
    auto first = m.write_of(a), second = m.write_of(b);
    m.io.start(first);
    m.io.start(second);
    auto done = m.finish(2);
    ASSERT_EQ(done.size(), 2U);
    seen.insert(m.contents() + (done[0].op == &first ? "a" : "b"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"aa", "ab", "ba", "bb"}));
}

TEST(SimulatedIo, ATimeoutEndsAtItsTime) {
  machine m;
  EXPECT_EQ(m.result_of({.request = {.code = io_code::timeout, .after = std::chrono::hours{1}}}), -ETIME);
  EXPECT_EQ(m.events.now(), std::chrono::hours{1});
}

TEST(SimulatedIo, CancelsATimeoutAndWhatIsNotSubmitted) {
  machine m;
  operation timeout{.request = {.code = io_code::timeout, .after = std::chrono::hours{1}}};
  m.io.start(timeout);
  m.io.enter();
  m.io.cancel(timeout);
  std::string text = "abc";
  auto write = m.write_of(text);
  m.io.start(write);
  m.io.cancel(write);
  auto done = m.finish(2);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].result, -ECANCELED);
  EXPECT_EQ(done[1].result, -ECANCELED);
  EXPECT_EQ(m.events.now(), nanoseconds{0});
  EXPECT_EQ(m.contents(), "");
}

TEST(SimulatedIo, ACancelledWriteEitherHappensOrDoesNot) {
  std::set<int32_t> seen;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    machine m(seed);
    std::string text = "abc";
    auto write = m.write_of(text);
    m.io.start(write);
    m.io.enter();
    m.io.cancel(write);
    auto done = m.finish(1);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(m.contents(), done[0].result == 3 ? "abc" : "");
    EXPECT_FALSE(m.events.step()) << "it completes once";
    seen.insert(done[0].result);
  }
  EXPECT_EQ(seen, (std::set<int32_t>{-ECANCELED, 3}));
}

TEST(SimulatedIo, ASyncDoesNotCoverWritesInFlight) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    machine m(seed);
    std::string text = "abc";
    auto write = m.write_of(text);
    auto sync = m.sync_of();
    m.io.start(write);
    m.io.start(sync);
    EXPECT_EQ(m.finish(2).size(), 2U);
    m.disk.crash(survival::nothing);
    seen.insert(m.contents());
  }
  EXPECT_EQ(seen, std::set<std::string>{""});
}

TEST(SimulatedIo, ACrashLeavesAnyPartOfAWriteInFlight) {
  std::set<size_t> seen;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    machine m(seed);
    std::string text(3 * sector_bytes, 'x');
    auto write = m.write_of(text);
    m.io.start(write);
    m.io.enter();
    m.io.leave_writes(m.disk);
    m.io.end_process();
    file_facts facts;
    ASSERT_EQ(m.disk.stat("/file", facts), 0);
    seen.insert(facts.bytes / sector_bytes);
    EXPECT_FALSE(m.events.step()) << "nothing happens after the end";
    EXPECT_FALSE(m.io.has_ready());
  }
  EXPECT_EQ(seen, (std::set<size_t>{0, 1, 2, 3}));
}

TEST(SimulatedIo, ADeviceThatHangsDelaysWhileTimersGoOn) {
  machine m;
  m.io.hang(true);
  std::string text = "abc";
  auto write = m.write_of(text);
  operation timeout{.request = {.code = io_code::timeout, .after = std::chrono::hours{1}}};
  m.io.start(write);
  m.io.start(timeout);
  auto first = m.finish(1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].op, &timeout);
  m.io.wait();
  EXPECT_FALSE(m.io.has_ready());
  m.io.hang(false);
  auto second = m.finish(1);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].op, &write);
  EXPECT_EQ(second[0].result, 3);
}

TEST(SimulatedIo, ADeviceThatBeginsToHangKeepsWhatItWasGiven) {
  machine m;
  std::string text = "abc";
  auto write = m.write_of(text);
  m.io.start(write);
  m.io.enter();
  m.io.hang(true);
  m.io.wait();
  EXPECT_EQ(m.contents(), "");
  m.io.hang(false);
  EXPECT_EQ(m.finish(1).size(), 1U);
  EXPECT_EQ(m.contents(), "abc");
}

TEST(SimulatedIo, SomeOperationsTakeLong) {
  machine m;
  m.io.set_delays({.least = std::chrono::seconds{1}, .long_ones = per_million});
  EXPECT_EQ(m.result_of(m.sync_of()), 0);
  EXPECT_GE(m.events.now(), std::chrono::seconds{2});
}

TEST(SimulatedIo, AWakeEndsAWait) {
  machine m;
  operation timeout{.request = {.code = io_code::timeout, .after = milliseconds{1}}};
  m.io.start(timeout);
  m.io.wake();
  EXPECT_EQ(m.io.wait(), 0);
  EXPECT_FALSE(m.io.has_ready());
  EXPECT_EQ(m.io.wait(), 0) << "a wake counts once";
  EXPECT_TRUE(m.io.has_ready());
  EXPECT_EQ(m.finish(1).size(), 1U);
  EXPECT_EQ(m.io.wait(), 0) << "and a wait without events ends";
}

TEST(SimulatedIo, AFaultOfTheDiskIsTheResult) {
  machine m;
  m.disk.set_faults({.sync = per_million});
  EXPECT_EQ(m.result_of(m.sync_of()), -EIO);
  m.disk.vanish();
  std::string text = "abc";
  EXPECT_EQ(m.result_of(m.write_of(text)), -EIO);
}

TEST(SimulatedIo, TheSameSeedDoesTheSame) {
  auto hash = [](uint64_t seed) {
    machine m(seed);
    m.disk.set_faults({.write = per_million / 3, .sync = per_million / 3});
    std::string text = "abc";
    std::vector<operation> all;
    for (uint64_t i = 0; i < 20; ++i)
      all.push_back(i % 3 == 2 ? m.sync_of() : m.write_of(text, i));
    for (auto& op : all)
      m.io.start(op);
    EXPECT_EQ(m.finish(all.size()).size(), all.size());
    return m.events.trace_hash();
  };
  std::set<uint64_t> seen;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    EXPECT_EQ(hash(seed), hash(seed));
    seen.insert(hash(seed));
  }
  EXPECT_EQ(seen.size(), seeds);
}

} // namespace simulated_io_test
} // namespace terrace::simulation
