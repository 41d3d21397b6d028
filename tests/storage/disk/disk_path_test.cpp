// One path of a disk tier, with the completions of its ring given by the test.
#include "storage/disk/disk_path.hpp"

#include "storage/disk/disk_paths.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <optional>
#include <stdexcept>

#include <unistd.h>

using namespace terrace;
using namespace std::chrono_literals;

namespace {

constexpr auto reading = disk_direction::read;
constexpr auto writing = disk_direction::write;

struct recorded_output final : path_output {
  std::map<uint64_t, disk_queue::transfer> submitted; ///< by tag
  std::vector<uint64_t> cancelled;
  std::vector<std::pair<disk_direction, std::chrono::milliseconds>> pauses;
  size_t superblock_reads = 0;
  std::vector<std::string> warnings;

  void submit(uint64_t tag, disk_queue::transfer what) override { submitted[tag] = std::move(what); }
  void cancel(uint64_t tag) override { cancelled.push_back(tag); }
  void pause(disk_direction direction, std::chrono::milliseconds how_long) override {
    pauses.emplace_back(direction, how_long);
  }
  void read_superblock() override { ++superblock_reads; }
  void warn(const std::string& line) override { warnings.push_back(line); }
};

struct reads_beside_others final : metrics::sample_sink {
  double count = 0;

  void counter(std::string_view name, std::string_view, const metrics::labels& of, double value) override {
    if (name == "terrace_disk_contended_operations_total" && of.back().second == "read")
      count = value;
  }
  void gauge(std::string_view, std::string_view, const metrics::labels&, double) override {}
  void histogram(std::string_view, std::string_view, const metrics::labels&,
                 const metrics::histogram_snapshot&) override {}
};

struct DiskPath : ::testing::Test {
  test::temporary_folder folder;
  std::shared_ptr<const extent_file> file = open();
  std::shared_ptr<disk_service> service = std::make_shared<disk_service>(1);
  std::shared_ptr<metrics::disk_probe> probe = std::make_shared<metrics::disk_probe>();
  recorded_output output;
  disk_path path{{file, io_limits{}, health_options{.failures_max = 1, .first_pause = 100ms}, probe,
                  std::make_shared<metrics::tier_probe>(), service, 0},
                 output};
  disk_path::time_point now{};
  std::vector<std::byte> memory{8192};

  std::shared_ptr<const extent_file> open() {
    auto files = extent_file::open_all(
        {.paths = {folder / "0"}, .capacity_bytes = 1 << 20, .direct = false, .owner = {}, .boot = {}});
    if (!files)
      throw std::runtime_error(files.error().text);
    return disk_paths(std::move(*files)).file(0);
  }
  using answer_ptr = std::shared_ptr<std::optional<disk_answer>>;
  answer_ptr ask(disk_direction direction) {
    auto answer = std::make_shared<std::optional<disk_answer>>();
    disk_request request;
    request.direction = direction;
    request.operations = {{file->extents_begin(), memory.data(), memory.size()}};
    path.add(
        request, [answer](disk_answer value) { *answer = std::move(value); }, now);
    return answer;
  }
  /// Ends the only operation that the kernel has.
  void end(int32_t result) {
    ASSERT_EQ(output.submitted.size(), 1u);
    uint64_t tag = output.submitted.begin()->first;
    output.submitted.clear();
    path.completed(tag, result, now);
  }
  void stall() {
    for (uint32_t tick = 0; tick <= ticks_of_patience; ++tick)
      path.tick(now);
  }
  std::array<std::byte, 2 * superblock_bytes> superblocks() const {
    std::array<std::byte, 2 * superblock_bytes> both{};
    EXPECT_EQ(::pread(file->fd(), both.data(), both.size(), 0), static_cast<ssize_t>(both.size()));
    return both;
  }
};

} // namespace

TEST_F(DiskPath, AnswersWhenTheOperationsAreDone) {
  auto answer = ask(reading);
  ASSERT_EQ(output.submitted.size(), 1u);
  EXPECT_EQ(output.submitted.begin()->second.bytes, memory.size());
  EXPECT_EQ(probe->in_kernel(), 1u);
  EXPECT_FALSE(*answer);
  end(static_cast<int32_t>(memory.size()));
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, std::vector{0});
  EXPECT_EQ(probe->in_kernel(), 0u);
}

TEST_F(DiskPath, BesideAnotherGroupOnItsDeviceItHasItsPartInFlight) {
  auto device = std::make_shared<shared_device>();
  io_limits limits;
  device_share other(device, 2, limits);
  recorded_output here;
  disk_path shared({file, limits, health_options{}, probe, std::make_shared<metrics::tier_probe>(), service,
                    0, std::make_shared<device_share>(device, 1, limits)},
                   here);
  auto contended = [&] {
    reads_beside_others seen;
    probe->collect({}, seen);
    return seen.count;
  };
  auto end_one = [&] {
    auto [tag, what] = *here.submitted.begin();
    here.submitted.erase(here.submitted.begin());
    shared.completed(tag, static_cast<int32_t>(what.bytes), now);
  };
  disk_request many;
  many.direction = reading;
  many.operations.assign(100, {file->extents_begin(), memory.data(), memory.size()});
  size_t answers = 0;
  shared.add(
      many, [&](const disk_answer&) { ++answers; }, now);
  EXPECT_EQ(here.submitted.size(), limits.depth);
  EXPECT_EQ(contended(), 0);
  other.room();
  for (uint32_t i = 0; i < limits.depth / 2; ++i)
    end_one();
  EXPECT_EQ(here.submitted.size(), limits.depth / 2);
  end_one();
  EXPECT_EQ(here.submitted.size(), limits.depth / 2);
  EXPECT_EQ(contended(), 1);
  while (!here.submitted.empty())
    end_one();
  EXPECT_EQ(answers, 1u);
  EXPECT_EQ(device->active_groups(), 1u) << "it left when nothing waited any more";
}

TEST_F(DiskPath, AFailureTakesItOutOfServiceAndIsLoggedAfterStatusShowsIt) {
  auto answer = ask(writing);
  end(-EIO);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, std::vector{EIO});
  EXPECT_TRUE((*answer)->out_of_service);
  EXPECT_FALSE(service->writes());
  EXPECT_TRUE(service->reads());
  ASSERT_EQ(output.pauses.size(), 1u);
  EXPECT_EQ(output.pauses[0], std::make_pair(writing, std::chrono::milliseconds(100)));
  ASSERT_EQ(output.warnings.size(), 1u);
  EXPECT_NE(output.warnings[0].find("degraded"), std::string::npos) << output.warnings[0];
  auto refused = ask(writing);
  ASSERT_TRUE(*refused);
  EXPECT_EQ((*refused)->failure.code, errc::busy);
  EXPECT_TRUE(output.submitted.empty());
}

TEST_F(DiskPath, AfterAPauseAWriteIsTheTrial) {
  ask(writing);
  end(-EIO);
  path.pause_over(writing);
  EXPECT_TRUE(service->writes()) << "one may be tried";
  auto answer = ask(writing);
  end(static_cast<int32_t>(memory.size()));
  ASSERT_TRUE(*answer);
  EXPECT_FALSE((*answer)->out_of_service);
  ASSERT_EQ(output.warnings.size(), 2u);
  EXPECT_NE(output.warnings[1].find("is back"), std::string::npos) << output.warnings[1];
  EXPECT_TRUE(service->reason().empty());
}

TEST_F(DiskPath, AfterAPauseReadsAreTriedWithTheSuperblock) {
  ask(reading);
  end(-EIO);
  path.pause_over(reading);
  EXPECT_EQ(output.superblock_reads, 1u);
  path.superblock_read(-EIO, superblocks(), now);
  EXPECT_FALSE(service->reads());
  EXPECT_EQ(output.pauses.size(), 2u) << "another pause";
  path.pause_over(reading);
  auto both = superblocks();
  path.superblock_read(static_cast<int32_t>(both.size()), both, now);
  EXPECT_TRUE(service->reads());
}

TEST_F(DiskPath, AnOperationThatStallsIsAnsweredAndCancelledAndNothingIsTriedBeforeItEnds) {
  auto answer = ask(reading);
  uint64_t tag = output.submitted.begin()->first;
  EXPECT_TRUE(path.watch().worth_a_tick());
  stall();
  EXPECT_EQ(output.cancelled, std::vector{tag});
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failed, std::vector{ETIMEDOUT});
  EXPECT_FALSE(service->reads());
  path.pause_over(reading);
  EXPECT_EQ(output.superblock_reads, 0u);
  end(-ECANCELED);
  EXPECT_EQ(output.superblock_reads, 1u);
}

TEST_F(DiskPath, AStalledJournalEndsWritingUntilItCompletes) {
  path.journal_stalled(true, now);
  EXPECT_FALSE(service->writes());
  path.pause_over(writing);
  EXPECT_FALSE(service->writes());
  path.journal_stalled(false, now);
  EXPECT_TRUE(service->writes()) << "the next write is the trial";
}

TEST_F(DiskPath, AFileThatIsGoneIsReportedOnceAndSoIsItsReturn) {
  file_attributes as_opened{1, 2, 3, file->capacity_bytes()};
  path.opened(as_opened);
  path.looked(0, as_opened);
  EXPECT_TRUE(output.warnings.empty());
  path.looked(ENOENT, {});
  path.looked(ENOENT, {});
  ASSERT_EQ(output.warnings.size(), 1u);
  EXPECT_NE(output.warnings[0].find("degraded"), std::string::npos) << output.warnings[0];
  EXPECT_FALSE(service->reason().empty());
  path.looked(0, as_opened);
  ASSERT_EQ(output.warnings.size(), 2u);
  EXPECT_NE(output.warnings[1].find("is back"), std::string::npos) << output.warnings[1];
  EXPECT_TRUE(service->reason().empty());
}

TEST_F(DiskPath, ATrialThatSucceedsIsNotTheReturnOfTheFile) {
  path.opened({1, 2, 3, file->capacity_bytes()});
  path.looked(ENOENT, {});
  ask(writing);
  end(-EIO);
  path.pause_over(writing);
  ask(writing);
  end(static_cast<int32_t>(memory.size()));
  EXPECT_TRUE(service->reason().empty()) << "until the next look";
  size_t lines = output.warnings.size();
  path.looked(ENOENT, {});
  EXPECT_FALSE(service->reason().empty());
  EXPECT_EQ(output.warnings.size(), lines) << "it was logged before";
}

// ---- reports to the meter ----

namespace {

struct MeteredPath : DiskPath {
  std::shared_ptr<read_meter> meter = std::make_shared<read_meter>();
  recorded_output here;
  disk_path metered{{file, io_limits{.depth = 1}, health_options{.failures_max = 3, .first_pause = 100ms},
                     probe, std::make_shared<metrics::tier_probe>(), service, 0, nullptr, meter},
                    here};

  void add(disk_direction direction, size_t operations) {
    disk_request request;
    request.direction = direction;
    for (size_t i = 0; i < operations; ++i)
      request.operations.push_back({file->extents_begin(), memory.data(), memory.size()});
    metered.add(
        request, [](disk_answer) {}, now);
  }
  void end_first(int32_t result) {
    uint64_t tag = here.submitted.begin()->first;
    here.submitted.clear();
    metered.completed(tag, result, now);
  }
  uint64_t queued() const { return meter->state(now).queued_bytes; }
};

} // namespace

TEST_F(MeteredPath, OfReadsThatWaitAndArrive) {
  add(reading, 3);
  EXPECT_EQ(queued(), 3 * 8192u);
  now += 1s;
  end_first(4096); // in part
  EXPECT_EQ(queued(), 3 * 8192u - 4096);
  EXPECT_DOUBLE_EQ(meter->state(now).bytes_per_s, 4096);
  now += 1s;
  end_first(4096);
  EXPECT_EQ(queued(), 2 * 8192u);
  end_first(8192);
  end_first(8192);
  EXPECT_EQ(queued(), 0u);
}

TEST_F(MeteredPath, NotOfWrites) {
  add(writing, 2);
  now += 1s;
  end_first(8192);
  end_first(8192);
  EXPECT_EQ(queued(), 0u);
  EXPECT_EQ(meter->state(now).bytes_per_s, 0);
}

TEST_F(MeteredPath, WhatFailsIsNoLongerToBeRead) {
  add(reading, 2);
  end_first(-EIO);
  EXPECT_EQ(queued(), 8192u);
  end_first(4096);
  EXPECT_EQ(queued(), 4096u);
  end_first(-EIO);
  EXPECT_EQ(queued(), 0u);
}

TEST_F(MeteredPath, WhatStallsIsNoLongerToBeReadAndComesBackUncounted) {
  add(reading, 2);
  for (uint32_t tick = 0; tick <= ticks_of_patience; ++tick)
    metered.tick(now);
  EXPECT_EQ(queued(), 0u);
  now += 1s;
  end_first(8192);
  EXPECT_EQ(queued(), 0u);
  EXPECT_EQ(meter->state(now).bytes_per_s, 0);
}

TEST_F(MeteredPath, WhatItsClientGivesUpIsNoLongerToBeRead) {
  auto context = std::make_shared<request_context>();
  disk_request request;
  request.context = context;
  for (size_t i = 0; i < 3; ++i)
    request.operations.push_back({file->extents_begin(), memory.data(), memory.size()});
  metered.add(
      request, [](disk_answer) {}, now);
  context->ended = errc::cancelled;
  end_first(8192);
  EXPECT_EQ(queued(), 0u);
}
