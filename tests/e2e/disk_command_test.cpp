// terrace disk on a volume that the real daemon wrote.
#include "tests/support/child_process.hpp"
#include "workload.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

namespace terrace::e2e {
namespace disk_command_test {

constexpr uint64_t disk_bytes = 96 * mebibyte;

class DiskCommand : public testing::Test {
 protected:
  DiskCommand() { EXPECT_TRUE(daemon_.await_log("joined")); }

  ended_program disk(std::vector<std::string> words) {
    words.insert(words.begin(), {program("TERRACE"), "disk"});
    return run(words);
  }

  temporary_folder state_;
  std::string file_ = state_ / "terrace.extents";
  daemon_under_test daemon_{{.disk_bytes = disk_bytes, .state_dir = state_.path()}};
};

TEST_F(DiskCommand, InspectsAndVerifiesWhatTheDaemonWrote) {
  tester(daemon_.socket()).store(chain_of(1, 12));
  ASSERT_EQ(daemon_.terminate(), 0);
  auto inspected = disk({"inspect", file_, "--json"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_NE(inspected.out.find("\"objects\":12,\"payload_bytes\":" + std::to_string(12 * object_bytes)),
            std::string::npos)
      << inspected.out;
  EXPECT_NE(inspected.out.find("\"problems\":0"), std::string::npos) << inspected.out;
  auto verified = disk({"verify", file_, "--json"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_NE(verified.out.find("\"intact\":12,\"superseded\":0,\"damaged\":0"), std::string::npos)
      << verified.out;
}

TEST_F(DiskCommand, VerifiesWhatAKilledDaemonLeft) {
  tester client(daemon_.socket());
  client.store(chain_of(1, 120)); // more than the disk holds, so extents are reused
  daemon_.kill();
  unique_fd file(::open(file_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(file.get(), LOCK_EX), 0) << "when the kernel is done with what the daemon had under way";
  file.reset();
  auto verified = disk({"verify", file_, "--json"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out;
  EXPECT_EQ(verified.out.find("\"intact\":0,"), std::string::npos) << verified.out;
}

/// Waits until the process has called write `count` times, or has ended.
void await_writes(pid_t pid, int count) {
  for (int writes = 0; writes < count;) {
    std::istringstream io(read_file("/proc/" + std::to_string(pid) + "/io"));
    std::string name;
    uint64_t value = 0;
    bool found = false;
    while (io >> name >> value)
      if (name == "syscw:") {
        writes = static_cast<int>(value);
        found = true;
      }
    if (!found)
      return;
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == pid)
      return;
  }
}

TEST_F(DiskCommand, VerifiesWhatAKilledResizeLeft) {
  tester(daemon_.socket()).store(chain_of(1, 40));
  ASSERT_EQ(daemon_.terminate(), 0);
  for (int round = 0; round < 40; ++round) {
    uint64_t bytes = (round % 2 == 0 ? 160 : 96) * mebibyte;
    test::child_process resize([&](const test::child_voice&) {
      std::string size = std::to_string(bytes);
      ::execl(program("TERRACE").c_str(), "terrace", "disk", "resize", file_.c_str(), size.c_str(), nullptr);
      return 127;
    });
    await_writes(resize.pid(), round);
    resize.kill();
    auto verified = disk({"verify", file_, "--json"});
    ASSERT_EQ(verified.exit_code, 0) << verified.out << verified.err;
    ASSERT_NE(verified.out.find("\"intact\":40,"), std::string::npos) << verified.out;
  }
}

TEST_F(DiskCommand, LeavesTheStoreOfARunningDaemonAlone) {
  for (std::vector<std::string> words : {std::vector<std::string>{"inspect", file_},
                                         {"verify", file_},
                                         {"wipe", file_, "--yes"},
                                         {"resize", file_, "64MiB"}}) {
    auto refused = disk(words);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(
        refused.err.find("process " + std::to_string(daemon_.pid()) + " (terraced) has this volume open"),
        std::string::npos)
        << refused.err;
  }
}

TEST_F(DiskCommand, TheDaemonServesWhatWasResizedAndNothingOfWhatWasWiped) {
  auto chain = chain_of(1, 12);
  tester(daemon_.socket()).store(chain);
  ASSERT_EQ(daemon_.terminate(), 0);
  for (uint64_t bytes : {256 * mebibyte, 48 * mebibyte}) {
    auto resized = disk({"resize", file_, std::to_string(bytes)});
    EXPECT_EQ(resized.exit_code, 0) << resized.err;
    daemon_.configure({.disk_bytes = bytes, .state_dir = state_.path()});
    daemon_.start();
    ASSERT_TRUE(daemon_.await_log("12 objects found"));
    EXPECT_EQ(tester(daemon_.socket()).load_and_check(chain), 12U);
    ASSERT_EQ(daemon_.terminate(), 0);
  }
  EXPECT_EQ(disk({"wipe", file_}).exit_code, 2) << "nobody can be asked";
  EXPECT_EQ(disk({"wipe", file_, "--yes"}).exit_code, 0);
  daemon_.start();
  ASSERT_TRUE(daemon_.await_log("joined"));
  EXPECT_EQ(tester(daemon_.socket()).lookup(chain).found_chunks, 0U);
}

} // namespace disk_command_test
} // namespace terrace::e2e
