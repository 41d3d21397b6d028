// What fails on a simulated disk.
#include "disk_machine.hpp"

namespace terrace::simulation {
namespace {

using machine = disk_machine;

TEST(SimulatedDisk, ReadsWritesAndSyncsFail) {
  machine m;
  int file = m.create_durable("/a", sectors_of("ab"));
  m.disk.set_faults({.read = per_million, .sync = per_million});
  EXPECT_EQ(m.read(file), "error 5");
  EXPECT_EQ(m.disk.fsync(file), -EIO);
  EXPECT_EQ(m.disk.fsync(m.disk.open("/", O_RDONLY)), -EIO);
  m.disk.set_faults({});
  EXPECT_EQ(m.letters("/a"), "ab");
}

TEST(SimulatedDisk, AFailedWriteMayHaveHappenedInPart) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", sectors_of("ab"));
    m.disk.set_faults({.write = per_million});
    EXPECT_EQ(m.write(file, 0, sectors_of("XY")), -EIO);
    return m.letters("/a");
  });
  EXPECT_EQ(seen, (strings{"ab", "Xb", "XY"}));
}

TEST(SimulatedDisk, AFailedSyncLosesWritesAlthoughTheNextSucceeds) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", sectors_of("ab"));
    m.write(file, 0, sectors_of("X"));
    m.disk.set_faults({.sync = per_million});
    EXPECT_EQ(m.disk.fsync(file), -EIO);
    m.disk.set_faults({});
    m.write(file, sector_bytes, sectors_of("Y"));
    EXPECT_EQ(m.disk.fsync(file), 0);
    EXPECT_EQ(m.letters("/a"), "XY");
    m.disk.crash();
    return m.letters("/a");
  });
  EXPECT_EQ(seen, (strings{"aY", "XY"}));
}

TEST(SimulatedDisk, TransfersEndEarly) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", sectors_of("abc"));
    m.disk.set_faults({.cut = per_million});
    int64_t written = m.write(file, 0, sectors_of("XYZ"));
    EXPECT_EQ(m.write(file, 2 * sector_bytes, sectors_of("c")), 512) << "one sector is not cut";
    size_t read = m.read(file).size();
    EXPECT_GE(read, sector_bytes);
    m.disk.set_faults({});
    return std::to_string(written) + m.letters("/a");
  });
  EXPECT_EQ(seen, (strings{"512Xbc", "1024XYc"}));
}

TEST(SimulatedDisk, ReadsAloneMayEndEarly) {
  machine m;
  int file = m.create("/a");
  m.disk.set_faults({.short_reads = per_million});
  EXPECT_EQ(m.write(file, 0, sectors_of("abc")), 3 * static_cast<int64_t>(sector_bytes));
  std::array<std::byte, 3 * sector_bytes> memory{};
  EXPECT_LT(m.disk.read(file, 0, memory), static_cast<int64_t>(memory.size()));
}

TEST(SimulatedDisk, SpaceIsRefused) {
  machine m;
  int file = m.create("/a");
  m.disk.set_faults({.space = per_million});
  EXPECT_EQ(m.write(file, 0, "x"), -ENOSPC);
  EXPECT_EQ(m.disk.fallocate(file, 4096), -ENOSPC);
  EXPECT_EQ(m.create("/b"), -ENOSPC);
  EXPECT_EQ(m.disk.mkdir("/d"), -ENOSPC);
  m.disk.set_faults({});
  EXPECT_EQ(m.write(file, 0, "x"), 1);
}

TEST(SimulatedDisk, BitsRotOnTheMedium) {
  machine m;
  int file = m.create_durable("/a", "a");
  m.disk.flip_bit("/a", 1);
  EXPECT_EQ(m.read(file), "c");
  m.write(file, 0, "x");
  m.disk.flip_bit("/a", 1);
  EXPECT_EQ(m.read(file), "x") << "the page cache has a newer version";
  m.disk.crash(survival::nothing);
  EXPECT_EQ(m.read("/a"), "a") << "inverted twice";
}

TEST(SimulatedDisk, WhatRotsIsWritten) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", "");
    m.write(file, 5 * sector_bytes, "w");
    EXPECT_EQ(m.disk.fsync(file), 0);
    std::string before = m.read(file);
    m.disk.rot();
    std::string after = m.read(file);
    auto [one, other] = std::mismatch(before.begin(), before.end(), after.begin());
    return one == before.end() ? "nothing" : *one == 'w' ? "a written byte" : "another";
  });
  EXPECT_EQ(seen, (strings{"a written byte"}));
}

TEST(SimulatedDisk, ASpoiltSectorIsUnreadableUntilItIsWritten) {
  machine m;
  int file = m.create_durable("/a", sectors_of("abc"));
  m.disk.spoil("/a", sector_bytes + 5);
  std::byte one{};
  EXPECT_EQ(m.disk.read(file, 0, {&one, 1}), 1);
  EXPECT_EQ(m.disk.read(file, 2 * sector_bytes, {&one, 1}), 1);
  EXPECT_EQ(m.read(file), "error 5");
  EXPECT_EQ(m.write(file, sector_bytes, sectors_of("Y")), 512);
  EXPECT_EQ(m.letters("/a"), "aYc");
}

TEST(SimulatedDisk, ADeviceVanishesAndReturns) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", sectors_of("ab"));
    m.write(file, 0, sectors_of("X"));
    m.disk.vanish();
    EXPECT_EQ(m.read(file), "error 5");
    EXPECT_EQ(m.write(file, 0, "x"), -EIO);
    EXPECT_EQ(m.disk.fsync(file), -EIO);
    EXPECT_EQ(m.disk.fallocate(file, 1), -EIO);
    EXPECT_EQ(m.disk.ftruncate(file, 1), -EIO);
    EXPECT_EQ(m.create("/b"), -EIO);
    m.disk.come_back();
    EXPECT_EQ(m.disk.fsync(file), -EIO) << "it tells that writes may be lost";
    EXPECT_EQ(m.disk.fsync(file), 0);
    m.disk.crash();
    return m.letters("/a");
  });
  EXPECT_EQ(seen, (strings{"ab", "Xb"}));
}

TEST(SimulatedDisk, ASnapshotIsADiskOfItsOwn) {
  machine m;
  m.write(m.create_durable("/a", sectors_of("ab")), 0, sectors_of("XY"));
  auto after = [&](uint64_t seed) {
    auto copy = m.disk.snapshot(seed);
    copy.crash(survival::sectors);
    std::array<std::byte, 1024> bytes{};
    EXPECT_EQ(copy.read(copy.open("/a", O_RDONLY), 0, bytes), 1024);
    return std::to_integer<int>(bytes[0]) * 256 + std::to_integer<int>(bytes[512]);
  };
  std::set<int> seen;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(after(seed), after(seed));
    seen.insert(after(seed));
  }
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_EQ(m.letters("/a"), "XY");
}

} // namespace
} // namespace terrace::simulation
