// A disk tier on several paths: objects go round them, and one that fails takes nothing along but its own.
#include "disk_fixture.hpp"

#include "storage/superblock.hpp"

#include <cerrno>
#include <set>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace {

struct DiskPaths : disk_fixture {
  DiskPaths() { start({.host_objects = 32, .disk_objects = 85, .disk_paths = 2}); }

  int file(size_t path) { return paths->file(path)->fd(); }
  /// On which path a chunk lies.
  size_t path_of(uint64_t number) {
    return paths->locate(hold(disk_tier(), number, 1)->places()[0].offset).path;
  }
  void every(size_t path, io_code code, int32_t result) {
    ring.respond([fd = file(path), code, result](const runtime::io_request& request) {
      return request.fd == fd && request.code == code ? std::optional<int32_t>(result) : std::nullopt;
    });
  }
  void all_is_well() {
    ring.respond([](const runtime::io_request&) -> std::optional<int32_t> { return std::nullopt; });
  }
  /// Path 1 cannot be read from now on; so many reads found that out.
  void lose_path_1() {
    every(1, io_code::read, -ENODEV);
    load(0, 8);
    forget_host(0, 8);
    ASSERT_FALSE(service->reads(1));
  }
  uint64_t used_on(size_t path) {
    const path_map& map = paths->map();
    uint64_t used = 0;
    for (uint64_t n = 0; n < 300; ++n)
      if (auto held = hold(disk_tier(), n, 1); held && map.path_of(held->places()[0].offset) == path)
        used += held->places()[0].physical_bytes;
    return used;
  }
};

} // namespace

TEST_F(DiskPaths, ConsecutiveChunksLieOnDifferentPaths) {
  on_disk(0, 8);
  for (uint64_t n = 0; n < 8; ++n)
    EXPECT_EQ(path_of(n), n % 2) << n;
  EXPECT_EQ(load(0, 8).chunks, 8u);
  for (uint64_t n = 0; n < 8; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(DiskPaths, BothPathsAreFilledAndEvictedFrom) {
  for (uint64_t first = 0; first < 280; first += 20)
    EXPECT_EQ(store(first, 20).stored_chunks, 20u);
  auto usage = report(disk_tier()).usage;
  EXPECT_GT(usage.used_bytes, usage.capacity_bytes * 9 / 10);
  EXPECT_EQ(present(disk_tier(), 260, 20), 20u);
  EXPECT_GT(used_on(0), usage.capacity_bytes / 3);
  EXPECT_GT(used_on(1), usage.capacity_bytes / 3);
}

TEST_F(DiskPaths, AreFoundAgain) {
  on_disk(0, 10);
  std::vector<size_t> before;
  for (uint64_t n = 0; n < 10; ++n)
    before.push_back(path_of(n));
  uint64_t used = report(disk_tier()).usage.used_bytes;
  for (bool in_order : {true, false}) {
    restart(in_order);
    EXPECT_EQ(present(disk_tier(), 0, 10), 10u);
    EXPECT_EQ(report(disk_tier()).usage.used_bytes, used);
    for (uint64_t n = 0; n < 10; ++n)
      EXPECT_EQ(path_of(n), before[n]);
    EXPECT_EQ(load(0, 10).chunks, 10u);
    EXPECT_TRUE(delivered(9));
  }
}

TEST_F(DiskPaths, WhatWasEvictedIsNotFound) {
  for (uint64_t first = 0; first < 280; first += 20)
    store(first, 20);
  std::vector<bool> before;
  for (uint64_t n = 0; n < 280; ++n)
    before.push_back(present(disk_tier(), n, 1) == 1);
  restart(false);
  for (uint64_t n = 0; n < 280; ++n)
    EXPECT_EQ(present(disk_tier(), n, 1) == 1, before[n]) << n;
  for (uint64_t first = 300; first < 500; first += 20)
    EXPECT_EQ(store(first, 20).stored_chunks, 20u) << "eviction goes on among what was found";
}

// ---- clearing ----

TEST_F(DiskPaths, AClearIsDurableOnEveryPathBeforeItAnswers) {
  on_disk(0, 8);
  ring.hold_those([fd = file(1)](const runtime::io_request& request) {
    return request.fd == fd && request.code == io_code::fsync;
  });
  auto cleared = ask<clear_answer>(disk_tier(), clear_request{});
  settle();
  EXPECT_FALSE(*cleared);
  ring.release_those();
  settle();
  ASSERT_TRUE(*cleared);
  EXPECT_EQ((*cleared)->failure.code, errc::ok) << (*cleared)->failure.text;
  EXPECT_EQ((*cleared)->objects, 8u);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 8), 0u);
}

TEST_F(DiskPaths, AClearThatOnePathCouldNotWriteDownSaysSoAndHoldsAllTheSameAfterARestart) {
  on_disk(0, 8);
  every(1, io_code::fsync, -EIO);
  auto cleared = clear(disk_tier());
  EXPECT_EQ(cleared.failure.code, errc::internal);
  EXPECT_NE(cleared.failure.text.find("store1"), std::string::npos) << cleared.failure.text;
  EXPECT_EQ(cleared.failure.text.find("store "), std::string::npos) << cleared.failure.text;
  all_is_well();
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 8), 0u) << "the other path knows";
}

TEST_F(DiskPaths, WhatIsStoredAfterAClearOfASpaceThatOnePathHasNothingOfSurvives) {
  on_disk(0, 1); // on path 0 alone
  EXPECT_EQ(path_of(0), 0u);
  EXPECT_EQ(clear(disk_tier(), in->id).objects, 1u);
  on_disk(0, 4);
  EXPECT_EQ(clear(disk_tier(), in->id).objects, 4u);
  on_disk(4, 4);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 4), 0u);
  EXPECT_EQ(present(disk_tier(), 4, 4), 4u);
  clear(disk_tier());
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 8), 0u);
}

// ---- a path that fails ----

TEST_F(DiskPaths, OnePathThatCannotBeReadTakesItsOwnObjectsOutAndNoOthers) {
  on_disk(0, 8);
  lose_path_1();
  EXPECT_TRUE(service->reads(0));
  EXPECT_TRUE(service->reads());
  EXPECT_TRUE(service->writes());
  ASSERT_EQ(disk_warnings.size(), 1u);
  EXPECT_NE(disk_warnings[0].find("store1 cannot be read"), std::string::npos) << disk_warnings[0];
  EXPECT_NE(service->reason().find("store1"), std::string::npos) << service->reason();
  for (uint64_t n = 0; n < 8; ++n)
    EXPECT_EQ(present(disk_tier(), n, 1), n % 2 == 0 ? 1u : 0u) << n;
  EXPECT_EQ(lookup(chain(0, 8)).plan.found_chunks, 1u);
  EXPECT_EQ(load(0, 1).chunks, 1u);
  EXPECT_TRUE(delivered(0));
  EXPECT_EQ(report(disk_tier()).objects, 8u) << "nothing is dropped";
}

TEST_F(DiskPaths, ALoadThatMeetsTheFailureDeliversWhatComesBeforeIt) {
  on_disk(0, 8);
  every(1, io_code::read, -ENODEV);
  auto loaded = load(0, 8);
  EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
  EXPECT_EQ(loaded.chunks, 1u);
  EXPECT_TRUE(delivered(0));
  EXPECT_EQ(present(group->host, 0, 8), 4u) << "what the other path gave is in host memory";
}

TEST_F(DiskPaths, StoresGoToTheOtherPathMeanwhile) {
  on_disk(0, 8);
  lose_path_1();
  on_disk(20, 6);
  for (uint64_t n = 20; n < 26; ++n)
    EXPECT_EQ(path_of(n), 0u);
  EXPECT_EQ(load(20, 6).chunks, 6u);
  EXPECT_TRUE(delivered(25));
}

TEST_F(DiskPaths, WhatIsOutOfReachIsWrittenAnewWhenItIsStoredAgain) {
  on_disk(0, 8);
  lose_path_1();
  on_disk(0, 8);
  for (uint64_t n = 0; n < 8; ++n)
    EXPECT_EQ(path_of(n), 0u) << n;
  EXPECT_EQ(load(0, 8).chunks, 8u);
  EXPECT_EQ(report(disk_tier()).objects, 8u);
  EXPECT_EQ(report(disk_tier()).errors, 0u);
  all_is_well();
  restart(false);
  EXPECT_EQ(report(disk_tier()).objects, 8u) << "the newer copy of each counts";
  EXPECT_EQ(load(0, 8).chunks, 8u);
}

TEST_F(DiskPaths, APathComesBackAloneWithItsObjects) {
  on_disk(0, 8);
  lose_path_1();
  all_is_well();
  advance(1s);
  EXPECT_TRUE(service->reads(1));
  EXPECT_TRUE(service->reason().empty()) << service->reason();
  EXPECT_EQ(disk_warnings.size(), 2u);
  EXPECT_EQ(lookup(chain(0, 8)).plan.found_chunks, 8u);
  EXPECT_EQ(load(0, 8).chunks, 8u);
  EXPECT_TRUE(delivered(7));
  on_disk(20, 4);
  std::set<size_t> used;
  for (uint64_t n = 20; n < 24; ++n)
    used.insert(path_of(n));
  EXPECT_EQ(used.size(), 2u);
}

TEST_F(DiskPaths, AnotherPathsFileInItsPlaceKeepsItOut) {
  on_disk(0, 8);
  lose_path_1();
  std::array<char, 2 * superblock_bytes> own{}, other{};
  ASSERT_EQ(::pread(file(1), own.data(), own.size(), 0), static_cast<ssize_t>(own.size()));
  ASSERT_EQ(::pread(file(0), other.data(), other.size(), 0), static_cast<ssize_t>(other.size()));
  ASSERT_EQ(::pwrite(file(1), other.data(), other.size(), 0), static_cast<ssize_t>(other.size()));
  all_is_well();
  advance(1s);
  EXPECT_FALSE(service->reads(1));
  ASSERT_EQ(::pwrite(file(1), own.data(), own.size(), 0), static_cast<ssize_t>(own.size()));
  advance(2s);
  EXPECT_TRUE(service->reads(1));
}

TEST_F(DiskPaths, APathThatCannotBeWrittenServesWhatItHas) {
  on_disk(0, 8);
  every(1, io_code::write, -EIO);
  for (uint64_t first = 20; first < 60; first += 10)
    store(first, 10);
  EXPECT_FALSE(service->writes(1));
  EXPECT_TRUE(service->reads(1));
  forget_host(20, 12);
  EXPECT_EQ(load(0, 8).chunks, 8u);
  forget_host(0, 8);
  on_disk(100, 4);
  for (uint64_t n = 100; n < 104; ++n)
    EXPECT_EQ(path_of(n), 0u);
}

TEST_F(DiskPaths, EvictionGoesOnWhileAPathIsOut) {
  for (uint64_t first = 0; first < 160; first += 20)
    on_disk(first, 20);
  every(1, io_code::read, -ENODEV);
  for (uint64_t first = 0; first < 160 && service->reads(1); first += 20)
    load(first, 20);
  ASSERT_FALSE(service->reads(1));
  for (uint64_t first = 200; first < 500; first += 20) {
    EXPECT_EQ(store(first, 20).stored_chunks, 20u);
    EXPECT_EQ(present(disk_tier(), first, 20), 20u) << first;
  }
  EXPECT_EQ(report(disk_tier()).held_objects, 0u);
}

TEST_F(DiskPaths, WithoutAnyPathHostMemoryServes) {
  on_disk(0, 8);
  ring.respond([](const runtime::io_request& request) -> std::optional<int32_t> {
    return request.code == io_code::read ? std::optional(-ENODEV) : std::nullopt;
  });
  EXPECT_EQ(load(0, 8).chunks, 0u);
  EXPECT_FALSE(service->reads());
  EXPECT_FALSE(service->writes());
  EXPECT_EQ(store(20, 4).stored_chunks, 4u);
  EXPECT_EQ(load(20, 4).chunks, 4u);
  EXPECT_EQ(disk_warnings.size(), 2u);
}

TEST_F(DiskPaths, APathThatHangsIsGivenUpAndTheOtherServes) {
  on_disk(0, 8);
  ring.hold_those([fd = file(1)](const runtime::io_request& request) {
    return request.fd == fd && request.code == io_code::read;
  });
  auto loaded = begin_load(0, 8);
  settle();
  EXPECT_FALSE(*loaded);
  for (int i = 0; i < 5; ++i)
    advance(2500ms);
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->chunks, 1u);
  EXPECT_FALSE(service->reads(1));
  EXPECT_TRUE(service->reads(0));
  on_disk(20, 4);
  EXPECT_EQ(load(20, 4).chunks, 4u);
  ring.release_those();
  advance(1s);
  EXPECT_TRUE(service->reads(1));
  EXPECT_EQ(load(0, 8).chunks, 8u);
  EXPECT_TRUE(delivered(7));
}
