#include "daemon/limits.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace terrace {
namespace {

/// A folder with files of the kernel.
struct MachineMemory : ::testing::Test {
  std::string root = "/tmp/terrace-machine-memory-" + std::to_string(::getpid());

  ~MachineMemory() { std::filesystem::remove_all(root); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text << "\n";
  }
  void machine(uint64_t mib) {
    write("/proc/meminfo", "MemTotal:       " + std::to_string(mib << 10) + " kB\nMemFree:  1 kB");
  }
  std::string refusal(uint64_t bytes, bool huge_pages = false) {
    host_options host;
    host.bytes = bytes;
    host.huge_pages = huge_pages;
    auto fits = fits_in_memory(host, memory_limits(root));
    return fits ? "" : fits.error().text;
  }
};

TEST_F(MachineMemory, IsWhatTheMachineHas) {
  machine(1024);
  EXPECT_EQ(refusal(gibibyte), "");
  auto text = refusal(gibibyte + mebibyte);
  EXPECT_NE(text.find("host.bytes is 1025MiB, but the machine (MemTotal) has 1024MiB"), std::string::npos)
      << text;
}

TEST_F(MachineMemory, IsAtMostTheLeastOfTheCgroupAndThoseAroundIt) {
  machine(1024);
  write("/proc/self/cgroup", "0::/system.slice/terraced.service");
  write("/sys/fs/cgroup/system.slice/terraced.service/memory.max", "max");
  write("/sys/fs/cgroup/system.slice/memory.max", std::to_string(512 * mebibyte));
  EXPECT_EQ(refusal(512 * mebibyte), "");
  auto text = refusal(513 * mebibyte);
  EXPECT_NE(text.find("the cgroup /system.slice (memory.max) has 512MiB"), std::string::npos) << text;
  EXPECT_EQ(refusal(1024 * mebibyte, true), "") << "huge pages are not charged to it";
  EXPECT_NE(refusal(1025 * mebibyte, true), "");
}

TEST_F(MachineMemory, OfAContainerIsAtTheTopOfItsCgroups) {
  machine(1024);
  write("/proc/self/cgroup", "0::/kubepods/pod1");
  write("/sys/fs/cgroup/memory.max", std::to_string(256 * mebibyte));
  EXPECT_NE(refusal(300 * mebibyte).find("the cgroup / (memory.max) has 256MiB"), std::string::npos);
}

TEST_F(MachineMemory, KnowsTheFirstVersionOfCgroups) {
  machine(1024);
  write("/proc/self/cgroup", "5:cpu,memory:/docker/1\n0::/");
  write("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", std::to_string(128 * mebibyte));
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_NE(refusal(300 * mebibyte).find("the cgroup /docker/1 (memory.limit_in_bytes) has 128MiB"),
            std::string::npos);
}

TEST_F(MachineMemory, WithoutTheseFilesThereIsNoLimit) {
  EXPECT_EQ(refusal(64 * tebibyte), "");
  EXPECT_FALSE(memory_limits().empty()) << "this machine has them";
}

} // namespace
} // namespace terrace
