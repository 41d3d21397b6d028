// A disk tier on two paths: restarts of its daemon, and files that are not where they should be.
#include "workload.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace terrace::e2e {
namespace disk_paths_test {

namespace fs = std::filesystem;

constexpr uint64_t disk_bytes = 128 * mebibyte;

class DiskPaths : public testing::Test {
 protected:
  DiskPaths() { EXPECT_TRUE(daemon_.await_log("joined")); }

  daemon_options options(const std::string& lines = {}) const {
    return {.disk_bytes = disk_bytes,
            .disk = lines,
            .disk_paths = {a_.path(), b_.path()},
            .state_dir = a_.path()};
  }
  std::string file(char path) const { return (path == 'a' ? a_ : b_) / "terrace.extents"; }

  /// Stops the daemon; waits until the kernel has finished with its files.
  void stop(bool kill = false) {
    if (kill)
      daemon_.kill();
    else
      ASSERT_EQ(daemon_.terminate(), 0);
    for (char path : {'a', 'b'}) {
      unique_fd fd(::open(file(path).c_str(), O_RDONLY | O_CLOEXEC));
      ASSERT_EQ(::flock(fd.get(), LOCK_EX), 0);
    }
  }
  void start(const std::string& lines = {}) {
    daemon_.configure(options(lines));
    daemon_.start();
  }
  /// The daemon runs without a disk tier, and status reports this.
  void expect_refused(const std::string& why) {
    ASSERT_TRUE(daemon_.await_log("is off"));
    tester client(daemon_.socket());
    auto disk = client.tier("disk");
    EXPECT_EQ(disk.state, "degraded");
    EXPECT_NE(disk.reason.find(why), std::string::npos) << disk.reason;
    EXPECT_EQ(client.store(chain_of(99, 2)), 2U) << "host memory serves";
  }
  /// The daemon runs on the other path, and log and status give the reason.
  void expect_without(char path, const std::string& why) {
    ASSERT_TRUE(daemon_.await_log("continues without 1 of its 2 paths: " + file(path)));
    tester client(daemon_.socket());
    auto disk = client.tier("disk");
    EXPECT_EQ(disk.state, "degraded");
    EXPECT_NE(disk.reason.find(file(path)), std::string::npos) << disk.reason;
    EXPECT_NE(disk.reason.find(why), std::string::npos) << disk.reason;
    auto fresh = chain_of(77, 2);
    EXPECT_EQ(client.store(fresh), 2U);
    EXPECT_EQ(client.lookup(fresh).found_chunks, 2U);
  }
  ended_program disk(std::vector<std::string> words) {
    words.insert(words.begin(), {program("TERRACE"), "disk"});
    return run(words);
  }

  temporary_folder a_, b_;
  daemon_under_test daemon_{options()};
};

TEST_F(DiskPaths, BothFilesHoldAPartOfEveryChain) {
  tester(daemon_.socket()).store(chain_of(1, 12));
  stop();
  for (char path : {'a', 'b'}) {
    EXPECT_EQ(fs::file_size(file(path)), disk_bytes / 2);
    auto inspected = disk({"inspect", file(path), "--json"});
    EXPECT_NE(inspected.out.find("\"objects\":6,"), std::string::npos) << inspected.out;
    auto verified = disk({"verify", file(path), "--json"});
    EXPECT_EQ(verified.exit_code, 0) << verified.out;
    EXPECT_NE(verified.out.find("\"intact\":6"), std::string::npos) << verified.out;
  }
}

TEST_F(DiskPaths, AfterAKillNothingIsWrongAndNothingClearedComesBack) {
  for (uint64_t cycle = 0; cycle < 3; ++cycle) {
    auto cleared = chain_of(10 * cycle + 1, 12), kept = chain_of(10 * cycle + 2, 12);
    {
      tester client(daemon_.socket());
      client.store(cleared);
      auto answer = client->admin().clear(nullptr, patiently());
      ASSERT_TRUE(answer) << answer.error().text;
      client.store(kept);
    }
    stop(true);
    start();
    ASSERT_TRUE(daemon_.await_log("joined"));
    tester client(daemon_.socket());
    EXPECT_EQ(client.lookup(cleared).found_chunks, 0U);
    client.load_and_check(kept); // everything delivered is right
    auto tier = client.tier("disk");
    EXPECT_EQ(tier.used_bytes + tier.free_bytes, tier.capacity_bytes);
    EXPECT_EQ(tier.used_bytes, tier.objects * (object_bytes + 4096));
  }
}

TEST_F(DiskPaths, AFileThatIsMissingIsDoneWithoutUntilItIsBackOrGivenUp) {
  auto chain = chain_of(1, 12);
  tester(daemon_.socket()).store(chain);
  stop();
  fs::rename(file('b'), b_ / "elsewhere");
  start();
  expect_without('b', "the file does not exist; path 1 of 2");
  EXPECT_FALSE(fs::exists(file('b')));
  {
    tester client(daemon_.socket());
    EXPECT_EQ(client.lookup(chain).found_chunks, 1U);
    EXPECT_EQ(client.load_and_check(chain), 1U);
    EXPECT_LT(client.tier("disk").capacity_bytes, disk_bytes / 2);
  }
  ASSERT_EQ(daemon_.terminate(), 0);
  fs::rename(b_ / "elsewhere", file('b'));
  start();
  ASSERT_TRUE(daemon_.await_log("joined"));
  EXPECT_EQ(tester(daemon_.socket()).load_and_check(chain), 12U);
  stop();
  fs::remove(file('b'));
  start("on_mismatch = \"adapt\"\n");
  ASSERT_TRUE(daemon_.await_log("joined"));
  tester client(daemon_.socket());
  EXPECT_EQ(client.tier("disk").state, "ready");
  EXPECT_GT(client.store(chain), 0U);
  EXPECT_EQ(client.load_and_check(chain), 12U);
}

TEST_F(DiskPaths, ADriveThatCannotBeOpenedIsDoneWithoutAndBringsNothingBackThatWasCleared) {
  auto cleared = chain_of(1, 12), kept = chain_of(2, 12);
  tester(daemon_.socket()).store(cleared);
  stop();
  fs::rename(file('a'), a_ / "elsewhere");
  fs::create_directory(file('a')); // a folder cannot be opened as a file
  start();
  expect_without('a', "Is a directory");
  {
    tester client(daemon_.socket());
    auto answer = client->admin().clear(nullptr, patiently());
    ASSERT_TRUE(answer) << answer.error().text;
    EXPECT_EQ(client.store(kept), 12U);
  }
  stop(true);
  fs::remove(file('a'));
  fs::rename(a_ / "elsewhere", file('a'));
  start();
  ASSERT_TRUE(daemon_.await_log("joined"));
  tester client(daemon_.socket());
  EXPECT_EQ(client.lookup(cleared).found_chunks, 0U);
  client.load_and_check(kept);
  EXPECT_EQ(client.tier("disk").state, "ready");
}

TEST_F(DiskPaths, AnEmptyFileTakesThePlaceOfALostOne) {
  auto chain = chain_of(1, 12);
  tester(daemon_.socket()).store(chain);
  stop();
  fs::remove(file('a'));
  std::ofstream(file('a')).flush();
  start();
  ASSERT_TRUE(daemon_.await_log("6 objects found"));
}

TEST_F(DiskPaths, SwappedFilesAreRefusedForeignOnesDoneWithoutAndBothLeftAsTheyAre) {
  auto chain = chain_of(1, 12);
  tester(daemon_.socket()).store(chain);
  stop();
  auto swap = [&] {
    fs::rename(file('a'), a_ / "x");
    fs::rename(file('b'), file('a'));
    fs::rename(a_ / "x", file('b'));
  };
  swap();
  start();
  expect_refused("path 0 was expected");
  ASSERT_EQ(daemon_.terminate(), 0);
  swap();

  temporary_folder c, d; // another store of this machine
  daemon_.configure({.disk_bytes = disk_bytes, .disk_paths = {c.path(), d.path()}, .state_dir = c.path()});
  daemon_.start();
  ASSERT_TRUE(daemon_.await_log("joined"));
  ASSERT_EQ(daemon_.terminate(), 0);
  fs::rename(file('b'), b_ / "own");
  fs::rename(d / "terrace.extents", file('b'));
  start();
  expect_without('b', "as in " + file('a') + ", was expected");
  ASSERT_EQ(daemon_.terminate(), 0);

  fs::rename(b_ / "own", file('b'));
  start();
  ASSERT_TRUE(daemon_.await_log("joined"));
  EXPECT_EQ(tester(daemon_.socket()).load_and_check(chain), 12U) << "none of that changed anything";
}

TEST_F(DiskPaths, ADaemonWaitsForWhicheverFileAnotherHasOpen) {
  stop();
  unique_fd other(::open(file('b').c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  start();
  ASSERT_TRUE(daemon_.await_log("waits: " + file('b')));
  other.reset();
  ASSERT_TRUE(daemon_.await_log("joined"));
}

TEST_F(DiskPaths, AStoreOnOnePathGoesOnWithASecond) {
  temporary_folder one, two;
  auto chain = chain_of(1, 12);
  daemon_options alone{.disk_bytes = disk_bytes / 2, .state_dir = one.path()};
  daemon_under_test daemon(alone);
  ASSERT_TRUE(daemon.await_log("joined"));
  tester(daemon.socket()).store(chain);
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure({.disk_bytes = disk_bytes,
                    .disk = "on_mismatch = \"adapt\"\n",
                    .disk_paths = {one.path(), two.path()},
                    .state_dir = one.path()});
  daemon.start();
  ASSERT_TRUE(daemon.await_log("12 objects found"));
  EXPECT_EQ(tester(daemon.socket()).load_and_check(chain), 12U);
}

TEST_F(DiskPaths, OneThatIsCutOffIsNamedAndTheOtherServesOn) {
  auto chain = chain_of(1, 8);
  {
    tester client(daemon_.socket());
    for (uint64_t seed = 1; seed <= 4; ++seed)
      client.store(chain_of(seed, 8));
  }
  stop(); // everything is on disk, and no write makes the file long again
  start();
  ASSERT_TRUE(daemon_.await_log("joined"));
  tester client(daemon_.socket());
  unique_fd fd(::open(file('b').c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
  EXPECT_EQ(client.load_and_check(chain), 1U);
  for (uint64_t seed = 2; seed <= 4; ++seed) // a window of 4 MiB has two failures
    client.load_and_check(chain_of(seed, 8));
  ASSERT_TRUE(daemon_.await_log("the disk tier is degraded: " + file('b') + " cannot be read"));
  auto tier = client.tier("disk");
  EXPECT_EQ(tier.state, "degraded");
  EXPECT_EQ(tier.reason.find(file('a')), std::string::npos) << tier.reason;
  EXPECT_EQ(client.lookup(chain, false, 1U << static_cast<unsigned>(tier_kind::disk)).found_chunks, 1U);
  auto fresh = chain_of(20, 6);
  EXPECT_EQ(client.store(fresh), 6U);
  occupy(client, 300, objects_in(32 * mebibyte));
  EXPECT_EQ(client.load_and_check(fresh), 6U);
}

} // namespace disk_paths_test
} // namespace terrace::e2e
