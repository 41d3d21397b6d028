// The opening of a volume's files by their paths, on a simulated disk.
#include "simulated_calls.hpp"

#include "storage/extent_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

namespace terrace::simulation {
namespace {

struct volume_machine {
  explicit volume_machine(uint64_t seed) : events(seed), disk(seed, 16 << 20), calls(events, seed) {
    EXPECT_EQ(disk.mkdir(simulated_calls::folder), 0);
    EXPECT_EQ(disk.fsync(disk.open("/", O_RDONLY | O_DIRECTORY)), 0);
    calls.mount(disk);
  }
  result<extent_file> open() const {
    extent_file_options with;
    with.path = path;
    with.capacity_bytes = 2 << 20;
    return extent_file::open(with);
  }
  const std::string path = std::string(simulated_calls::folder) + "/volume";
  scheduler events;
  simulated_disk disk;
  simulated_calls calls;
};

TEST(VolumeFiles, AVolumeInUseIsThereAfterACrash) {
  volume_machine m(1);
  ASSERT_TRUE(m.open());
  m.disk.crash(survival::nothing);
  file_facts facts;
  EXPECT_EQ(m.disk.stat(m.path, facts), 0);
}

TEST(VolumeFiles, AFileThatAKilledDaemonMadeIsThereAfterACrash) {
  volume_machine m(1);
  m.disk.close(m.disk.open(m.path, O_RDWR | O_CREAT));
  m.disk.end_process();
  ASSERT_TRUE(m.open());
  m.disk.crash(survival::nothing);
  file_facts facts;
  EXPECT_EQ(m.disk.stat(m.path, facts), 0);
}

TEST(VolumeFiles, AFolderThatCannotBeSyncedIsAnError) {
  bool seen = false;
  for (uint64_t seed = 1; seed <= 100 && !seen; ++seed) {
    volume_machine m(seed);
    m.disk.set_faults({.sync = per_million / 3});
    auto opened = m.open();
    seen = !opened && opened.error().text.find("syncing its folder") != std::string::npos;
  }
  EXPECT_TRUE(seen);
}

} // namespace
} // namespace terrace::simulation
