// A device that fails: the tier is degraded, the group serves on, and the tier returns with the device.
#include "disk_fixture.hpp"
#include "storage/superblock.hpp"

#include <cerrno>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace {

struct DiskHealth : disk_fixture {
  DiskHealth() { start({.host_objects = 32, .disk_objects = 85}); }

  int file() { return paths->file(0)->fd(); }
  std::array<char, 2 * superblock_bytes> superblocks() {
    std::array<char, 2 * superblock_bytes> bytes{};
    EXPECT_EQ(::pread(file(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
  void write_superblocks(const std::array<char, 2 * superblock_bytes>& bytes) {
    ASSERT_EQ(::pwrite(file(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  void every(io_code code, std::optional<int32_t> result) {
    ring.respond([code, result](const runtime::io_request& request) -> std::optional<int32_t> {
      return request.code == code ? result : std::nullopt;
    });
  }
  void all_is_well() {
    ring.respond([](const runtime::io_request&) -> std::optional<int32_t> { return std::nullopt; });
  }
};

} // namespace

TEST_F(DiskHealth, WritesThatFailInARowEndWritingAndAreToldOnce) {
  on_disk(0, 2);
  ring.fail_next(io_code::write, EIO, 8);
  store(10, 8);
  EXPECT_FALSE(service->writes());
  EXPECT_TRUE(service->reads());
  ASSERT_EQ(disk_warnings.size(), 1u);
  EXPECT_NE(disk_warnings[0].find("cannot be written"), std::string::npos) << disk_warnings[0];
  EXPECT_NE(service->reason().find("Input/output error"), std::string::npos) << service->reason();
  EXPECT_EQ(report(group->host).held_objects, 0u);
  uint64_t writes = ring.started(io_code::write);
  EXPECT_EQ(store(20, 4).stored_chunks, 4u); // host memory takes them
  EXPECT_EQ(ring.started(io_code::write), writes);
  EXPECT_EQ(present(disk_tier(), 20, 4), 0u);
  EXPECT_EQ(load(0, 2).chunks, 2u); // and what is on disk is served
}

TEST_F(DiskHealth, AFullDeviceIsTriedAgainAfterAPauseAndComesBack) {
  ring.fail_next(io_code::write, ENOSPC);
  store(0, 1);
  EXPECT_FALSE(service->writes());
  advance(999ms);
  EXPECT_FALSE(service->writes());
  advance(1ms);
  EXPECT_TRUE(service->writes()); // the next write is the trial
  EXPECT_FALSE(service->reason().empty());
  store(10, 3);
  EXPECT_EQ(present(disk_tier(), 10, 3), 3u);
  EXPECT_TRUE(service->reason().empty()) << service->reason();
  ASSERT_EQ(disk_warnings.size(), 2u);
  EXPECT_NE(disk_warnings[1].find("is back"), std::string::npos) << disk_warnings[1];
}

TEST_F(DiskHealth, AFailedTrialDoublesThePause) {
  ring.fail_next(io_code::write, ENOSPC, 2);
  store(0, 1);
  advance(1s);
  store(1, 1);
  EXPECT_FALSE(service->writes());
  advance(1s);
  EXPECT_FALSE(service->writes());
  advance(1s);
  EXPECT_TRUE(service->writes());
  store(2, 1);
  EXPECT_EQ(present(disk_tier(), 2, 1), 1u);
  EXPECT_EQ(disk_warnings.size(), 2u); // not one for each trial
}

TEST_F(DiskHealth, ADeviceThatCannotBeReadKeepsItsObjectsForLater) {
  on_disk(0, 8);
  every(io_code::read, -EIO);
  auto loaded = load(0, 8);
  EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
  EXPECT_EQ(loaded.chunks, 0u);
  EXPECT_FALSE(service->reads());
  EXPECT_FALSE(service->writes());
  EXPECT_EQ(present(disk_tier(), 0, 8), 8u);
  EXPECT_EQ(lookup(chain(0, 8)).plan.found_chunks, 0u); // nobody is told of what cannot be had
  EXPECT_EQ(load(0, 8).chunks, 0u);
  EXPECT_EQ(store(20, 4).stored_chunks, 4u);
  EXPECT_EQ(load(20, 4).chunks, 4u);
  EXPECT_EQ(disk_warnings.size(), 1u);
  all_is_well();
  advance(1s);
  EXPECT_TRUE(service->reads());
  EXPECT_EQ(lookup(chain(0, 8)).plan.found_chunks, 8u);
  EXPECT_EQ(load(0, 8).chunks, 8u);
  EXPECT_TRUE(delivered(7));
  EXPECT_EQ(disk_warnings.size(), 2u);
}

TEST_F(DiskHealth, ADeviceThatStaysAwayIsTriedLessAndLessOften) {
  on_disk(0, 8);
  every(io_code::read, -ENODEV);
  load(0, 8);
  uint64_t reads = ring.started(io_code::read);
  for (int second = 0; second < 31; ++second)
    advance(1s);
  EXPECT_EQ(ring.started(io_code::read), reads + 5); // after 1, 3, 7, 15 and 31 seconds
  EXPECT_EQ(disk_warnings.size(), 1u);
  EXPECT_FALSE(service->reads());
}

TEST_F(DiskHealth, AFileThatLostItsSuperblockStaysOut) {
  on_disk(0, 8);
  auto good = superblocks();
  every(io_code::read, 0); // the file was emptied
  load(0, 8);
  EXPECT_FALSE(service->reads());
  write_superblocks({});
  all_is_well();
  advance(1s);
  EXPECT_FALSE(service->reads()); // there is something to read, and it is not this store
  write_superblocks(good);
  advance(2s);
  EXPECT_TRUE(service->reads());
  EXPECT_EQ(load(0, 8).chunks, 8u);
}

TEST_F(DiskHealth, SingleUnreadableObjectsAreForgottenAndTheTierServesOn) {
  on_disk(0, 8);
  uint64_t bad = file_place(3);
  ring.respond([bad](const runtime::io_request& request) -> std::optional<int32_t> {
    return request.code == io_code::read && request.offset == bad ? std::optional(-EIO) : std::nullopt;
  });
  EXPECT_EQ(load(0, 8).chunks, 3u);
  EXPECT_TRUE(service->reads());
  EXPECT_EQ(present(disk_tier(), 0, 8), 7u);
  EXPECT_TRUE(disk_warnings.empty());
}

TEST_F(DiskHealth, EndsWhileItIsOutOfService) {
  ring.fail_next(io_code::write, ENODEV);
  store(0, 1);
  EXPECT_FALSE(service->writes());
  // TearDown ends the actors, with the pause still in the ring.
}
