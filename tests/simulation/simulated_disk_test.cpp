#include "disk_machine.hpp"

namespace terrace::simulation {
namespace {

using machine = disk_machine;

// ---- calls ----

TEST(SimulatedDisk, ReadsWhatWasWritten) {
  machine m;
  int file = m.create("/a");
  EXPECT_EQ(m.write(file, 3, "xyz"), 3);
  EXPECT_EQ(m.read(file), std::string("\0\0\0xyz", 6));
  std::byte one{};
  EXPECT_EQ(m.disk.read(file, 6, {&one, 1}), 0) << "the file ends there";
  EXPECT_EQ(m.disk.read(file, 600, {&one, 1}), 0);
}

TEST(SimulatedDisk, RefusesAsTheKernelDoes) {
  machine m;
  int file = m.create("/a");
  std::byte one{};
  file_facts facts;
  EXPECT_EQ(m.disk.open("/missing", O_RDWR), -ENOENT);
  EXPECT_EQ(m.disk.open("/missing/a", O_RDWR | O_CREAT), -ENOENT);
  EXPECT_EQ(m.disk.open("/a/b", O_RDWR | O_CREAT), -ENOTDIR);
  EXPECT_EQ(m.disk.open("/a", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
  EXPECT_EQ(m.disk.open("/a", O_RDONLY | O_DIRECTORY), -ENOTDIR);
  EXPECT_EQ(m.disk.open("/", O_RDWR), -EISDIR);
  EXPECT_EQ(m.disk.mkdir("/a"), -EEXIST);
  EXPECT_EQ(m.disk.unlink("/missing"), -ENOENT);
  EXPECT_EQ(m.disk.unlink("/"), -EISDIR);
  EXPECT_EQ(m.disk.rename("/missing", "/b"), -ENOENT);
  EXPECT_EQ(m.disk.stat("/missing", facts), -ENOENT);
  EXPECT_EQ(m.disk.read(m.disk.open("/", O_RDONLY), 0, {&one, 1}), -EISDIR);
  EXPECT_EQ(m.disk.close(file), 0);
  EXPECT_EQ(m.disk.close(file), -EBADF);
  EXPECT_EQ(m.disk.read(file, 0, {&one, 1}), -EBADF);
  EXPECT_EQ(m.disk.write(file, 0, {&one, 1}), -EBADF);
  EXPECT_EQ(m.disk.fsync(file), -EBADF);
  EXPECT_EQ(m.disk.fallocate(file, 1), -EBADF);
  EXPECT_EQ(m.disk.ftruncate(file, 1), -EBADF);
  EXPECT_EQ(m.disk.fstat(file, facts), -EBADF);
  EXPECT_EQ(m.disk.set_direct(file, true), -EBADF);
}

TEST(SimulatedDisk, DirectTransfersAreAligned) {
  machine m;
  int file = m.create("/a", O_DIRECT);
  alignas(4096) std::array<std::byte, 2048> memory{};
  std::span<std::byte> all(memory);
  EXPECT_EQ(m.disk.write(file, 0, all.first(1024)), 1024);
  EXPECT_EQ(m.disk.write(file, 1, all.first(512)), -EINVAL);
  EXPECT_EQ(m.disk.write(file, 0, all.first(100)), -EINVAL);
  EXPECT_EQ(m.disk.read(file, 0, all.subspan(1, 512)), -EINVAL);
  EXPECT_EQ(m.disk.set_direct(file, false), 0);
  EXPECT_EQ(m.disk.write(file, 1, all.first(100)), 100);
}

TEST(SimulatedDisk, TellsSizesAndSpace) {
  machine m;
  int file = m.create("/a");
  EXPECT_EQ(m.disk.free_bytes(), disk_bytes);
  EXPECT_EQ(m.disk.fallocate(file, 10'000), 0);
  file_facts facts;
  ASSERT_EQ(m.disk.fstat(file, facts), 0);
  EXPECT_EQ(facts.bytes, 10'000U);
  EXPECT_EQ(facts.allocated_bytes, 12'288U);
  EXPECT_EQ(m.disk.free_bytes(), disk_bytes - 12'288);
  EXPECT_EQ(m.disk.fallocate(file, 100), 0) << "it never shrinks a file";
  ASSERT_EQ(m.disk.stat("/a", facts), 0);
  EXPECT_EQ(facts.bytes, 10'000U);
  EXPECT_EQ(m.disk.ftruncate(file, 100), 0);
  EXPECT_EQ(m.disk.free_bytes(), disk_bytes - 4096);
}

TEST(SimulatedDisk, FreesTheSpaceOfAFileWithTheLastDescriptor) {
  machine m;
  int file = m.create("/a");
  EXPECT_EQ(m.disk.fallocate(file, 4096), 0);
  EXPECT_EQ(m.disk.unlink("/a"), 0);
  m.sync_root();
  EXPECT_EQ(m.disk.free_bytes(), disk_bytes - 4096);
  EXPECT_EQ(m.disk.close(file), 0);
  EXPECT_EQ(m.disk.free_bytes(), disk_bytes);
}

TEST(SimulatedDisk, HasNoMoreSpaceThanItsCapacity) {
  auto sizes = outcomes([](machine& m) {
    int file = m.create("/a");
    EXPECT_EQ(m.disk.fallocate(file, disk_bytes - 4096), 0);
    EXPECT_EQ(m.write(file, disk_bytes - 4096, sectors_of("123456789")), -ENOSPC);
    EXPECT_EQ(m.disk.fallocate(file, disk_bytes + 1), -ENOSPC);
    uint64_t bytes = m.read(file).size();
    EXPECT_TRUE(bytes >= disk_bytes - 4096 && bytes <= disk_bytes) << bytes;
    return std::to_string(bytes);
  });
  EXPECT_GT(sizes.size(), 10U) << "what refuses may have allocated a part before";
}

// ---- what is durable ----

TEST(SimulatedDisk, WithoutASyncNothingIsDurable) {
  machine m;
  int file = m.create_durable("/a", sectors_of("ab"));
  m.write(file, 0, sectors_of("XYZ"));
  EXPECT_EQ(m.letters("/a"), "XYZ") << "but reads see it";
  m.disk.crash(survival::nothing);
  EXPECT_EQ(m.letters("/a"), "ab");
}

TEST(SimulatedDisk, ASyncMakesBytesAndSizeDurable) {
  for (bool direct : {false, true})
    for (survival how : all_survivals) {
      machine m;
      int file = m.create_durable("/a", sectors_of("ab"));
      alignas(4096) static std::array<std::byte, 1536> memory;
      memory.fill(std::byte{'X'});
      m.disk.set_direct(file, direct);
      EXPECT_EQ(m.disk.write(file, 0, memory), 1536);
      EXPECT_EQ(m.disk.fsync(file), 0);
      m.disk.crash(how);
      EXPECT_EQ(m.letters("/a"), "XXX");
    }
}

TEST(SimulatedDisk, DirectWritesNeedASyncToo) {
  machine m;
  int file = m.create_durable("/a", sectors_of("a"));
  alignas(4096) std::array<std::byte, 512> memory{};
  m.disk.set_direct(file, true);
  EXPECT_EQ(m.disk.write(file, 0, memory), 512);
  m.disk.crash(survival::nothing);
  EXPECT_EQ(m.letters("/a"), "a");
}

TEST(SimulatedDisk, ASyncCoversOnlyWhatWasWrittenBeforeItBegan) {
  machine m;
  int file = m.create_durable("/a", sectors_of("ab"));
  m.write(file, 0, sectors_of("X"));
  auto begun = m.disk.begin_sync(file);
  m.write(file, sector_bytes, sectors_of("Y"));
  EXPECT_EQ(m.disk.end_sync(begun), 0);
  m.disk.crash(survival::nothing);
  EXPECT_EQ(m.letters("/a"), "Xb");
}

TEST(SimulatedDisk, UnsyncedWritesSurviveInEveryCombination) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", sectors_of("ab"));
    m.write(file, 0, sectors_of("X"));
    m.write(file, sector_bytes, sectors_of("Y"));
    m.disk.crash();
    return m.letters("/a");
  });
  EXPECT_EQ(seen, (strings{"ab", "Xb", "aY", "XY"}));
}

TEST(SimulatedDisk, AWriteIsTornAtSectors) {
  auto any = outcomes([](machine& m) {
    m.write(m.create_durable("/a", sectors_of("abc")), 0, sectors_of("XYZ"));
    m.disk.crash(survival::sectors);
    return m.letters("/a");
  });
  EXPECT_EQ(any, (strings{"abc", "abZ", "aYc", "aYZ", "Xbc", "XbZ", "XYc", "XYZ"}));
  auto in_order = outcomes([](machine& m) {
    m.write(m.create_durable("/a", sectors_of("abc")), 0, sectors_of("XYZ"));
    m.disk.crash(survival::oldest);
    return m.letters("/a");
  });
  EXPECT_EQ(in_order, (strings{"abc", "Xbc", "XYc", "XYZ"}));
}

TEST(SimulatedDisk, ASectorHasOneOfItsVersions) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", sectors_of("a"));
    m.write(file, 0, sectors_of("X"));
    m.write(file, 0, sectors_of("Y"));
    m.disk.crash();
    return m.letters("/a");
  });
  EXPECT_EQ(seen, (strings{"a", "X", "Y"}));
}

TEST(SimulatedDisk, PartsOfASectorAreWrittenWithTheRestOfIt) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", "ab");
    m.write(file, 0, "X");
    m.write(file, 1, "Y");
    m.disk.crash();
    return m.read("/a");
  });
  EXPECT_EQ(seen, (strings{"ab", "Xb", "XY"})) << "the second write follows the first in the page";
}

TEST(SimulatedDisk, SizesSurviveInTheirOrderAndNewBytesAreZeros) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", sectors_of("ab"));
    EXPECT_EQ(m.disk.ftruncate(file, sector_bytes), 0);
    EXPECT_EQ(m.disk.ftruncate(file, 3 * sector_bytes), 0);
    EXPECT_EQ(m.letters("/a"), "a..");
    m.disk.crash();
    return m.letters("/a");
  });
  EXPECT_EQ(seen, (strings{"ab", "a", "a.."}));
}

TEST(SimulatedDisk, TheDeathOfTheProcessLosesNothingThatWasWritten) {
  machine m;
  int file = m.create("/a");
  m.write(file, 0, sectors_of("ab"));
  m.disk.end_process();
  EXPECT_EQ(m.letters("/a"), "ab");
  EXPECT_EQ(m.disk.fsync(file), -EBADF);
}

TEST(SimulatedDisk, AWriteThatIsCutOffMayHappenInPart) {
  auto seen = outcomes([](machine& m) {
    int file = m.create_durable("/a", sectors_of("ab"));
    m.disk.cut_off_write(file, 0, bytes_of(sectors_of("XY")));
    return m.letters("/a");
  });
  EXPECT_EQ(seen, (strings{"ab", "Xb", "XY"}));
}

// ---- names ----

TEST(SimulatedDisk, ANewNameNeedsASyncOfItsDirectory) {
  for (bool synced : {false, true}) {
    machine m;
    int file = m.create("/a");
    m.write(file, 0, "text");
    EXPECT_EQ(m.disk.fsync(file), 0);
    if (synced)
      m.sync_root();
    m.disk.crash(survival::nothing);
    EXPECT_EQ(m.read("/a"), synced ? "text" : "error 2");
  }
}

TEST(SimulatedDisk, ANameWithoutASyncOfTheFileMayBeOfAnEmptyOne) {
  machine m;
  m.write(m.create("/a"), 0, "text");
  m.sync_root();
  m.disk.crash(survival::nothing);
  EXPECT_EQ(m.read("/a"), "");
}

TEST(SimulatedDisk, ARenameHappensAsAWhole) {
  auto seen = outcomes([](machine& m) {
    m.create_durable("/a", "old");
    int next = m.create("/a.new");
    m.write(next, 0, "new");
    EXPECT_EQ(m.disk.fsync(next), 0);
    EXPECT_EQ(m.disk.rename("/a.new", "/a"), 0);
    EXPECT_EQ(m.read("/a"), "new");
    EXPECT_EQ(m.read("/a.new"), "error 2");
    m.disk.crash();
    return m.read("/a") + ", " + m.read("/a.new");
  });
  EXPECT_EQ(seen, (strings{"old, error 2", "old, new", "new, error 2"}));
}

TEST(SimulatedDisk, ASyncOfTheDirectoryMakesARenameDurable) {
  for (survival how : all_survivals) {
    machine m;
    m.create_durable("/a", "old");
    int next = m.create("/a.new");
    m.write(next, 0, "new");
    EXPECT_EQ(m.disk.fsync(next), 0);
    EXPECT_EQ(m.disk.rename("/a.new", "/a"), 0);
    m.sync_root();
    m.disk.crash(how);
    EXPECT_EQ(m.read("/a"), "new");
  }
}

TEST(SimulatedDisk, ARemovedNameMayComeBackUntilItsDirectoryIsSynced) {
  auto seen = outcomes([](machine& m) {
    m.create_durable("/a", "text");
    EXPECT_EQ(m.disk.unlink("/a"), 0);
    EXPECT_EQ(m.read("/a"), "error 2");
    m.disk.crash();
    return m.read("/a");
  });
  EXPECT_EQ(seen, (strings{"text", "error 2"}));
  machine m;
  m.create_durable("/a", "text");
  EXPECT_EQ(m.disk.unlink("/a"), 0);
  m.sync_root();
  m.disk.crash(survival::nothing);
  EXPECT_EQ(m.read("/a"), "error 2");
}

TEST(SimulatedDisk, AFileGoesWithItsDirectory) {
  machine m;
  EXPECT_EQ(m.disk.mkdir("/d"), 0);
  int file = m.create("/d/a");
  m.write(file, 0, "text");
  EXPECT_EQ(m.disk.fsync(file), 0);
  EXPECT_EQ(m.disk.fsync(m.disk.open("/d", O_RDONLY | O_DIRECTORY)), 0);
  auto lost = m.disk.snapshot(1);
  lost.crash(survival::nothing);
  EXPECT_EQ(lost.open("/d/a", O_RDONLY), -ENOENT) << "nobody synced the directory above";
  m.sync_root();
  m.disk.crash(survival::nothing);
  EXPECT_EQ(m.read("/d/a"), "text");
}

} // namespace
} // namespace terrace::simulation
