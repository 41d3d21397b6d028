// Host memory that the machine does not have, and memory that is not touched before it is used.
#include "tests/support/process_memory.hpp"
#include "workload.hpp"

#include <fstream>

namespace terrace::e2e {
namespace {

uint64_t machine_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  file >> name >> kibibytes; // MemTotal is the first line
  return kibibytes * 1024;
}

/// Returns the bytes of the arena and the clients' regions. The heap does not count, because a sanitizer
/// makes it arbitrarily large.
uint64_t shared_bytes(const daemon_under_test& daemon) {
  return test::resident_bytes(daemon.pid(), "RssShmem");
}

TEST(HostMemory, MoreThanTheMachineHasIsRefusedWithTheFigures) {
  uint64_t wanted = ((machine_bytes() / mebibyte + 2) | 1) * mebibyte; // odd, so that it is shown in MiB
  temporary_folder folder;
  std::string configuration = folder / "terraced.toml";
  write_file(configuration, "[[listen]]\npath = \"" + (folder / "socket").string() + "\"\n[host]\nbytes = " +
                                std::to_string(wanted) + "\nprefault = false\n[disk]\nbytes = 0\n");
  for (std::string option : {"--check", ""}) {
    std::vector<std::string> words{program("TERRACED"), "--config", configuration};
    if (!option.empty())
      words.push_back(option);
    auto ended = run(words);
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_NE(ended.err.find("host.bytes is " + std::to_string(wanted / mebibyte) + "MiB, but the machine"),
              std::string::npos)
        << ended.err;
    EXPECT_NE(ended.err.find(std::to_string(machine_bytes() / mebibyte) + "MiB of memory"), std::string::npos)
        << ended.err;
  }
}

TEST(HostMemory, WithoutPrefaultOnlyWhatIsUsedIsCommitted) {
  daemon_under_test daemon(
      {.host_bytes = 1024 * mebibyte, .host = "prefault = false\n", .disk_bytes = 64 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto chain = chain_of(1, 8);
  client.store(chain);
  EXPECT_EQ(client.load_and_check(chain), chain.size());
  // Objects are written from the arena, so the disk has worked.
  while (client.tier("disk").objects < chain.size()) {
    client.lookup(chain);
  }
  EXPECT_GT(shared_bytes(daemon), 0);
  EXPECT_LT(shared_bytes(daemon), 512 * mebibyte);
}

} // namespace
} // namespace terrace::e2e
