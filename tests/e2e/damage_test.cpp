// Damage under a running daemon, and in a file that it opens: log, status and metrics report it.
#include "base/printable.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

namespace terrace::e2e {
namespace damage_test {

constexpr uint64_t disk_bytes = 96 * mebibyte;

class Damage : public testing::Test {
 protected:
  Damage() { EXPECT_TRUE(daemon_.await_log("joined")); }

  std::string file() const { return daemon_.state() + "/terrace.extents"; }

  void overwrite(uint64_t at, const std::string& bytes) {
    unique_fd fd(::open(file().c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }

  /// The daemon continues, and reports everywhere what happened to its file.
  void expect_degraded(const std::string& why) {
    ASSERT_TRUE(daemon_.await_log("the disk tier is degraded: " + file() + why));
    tester client(daemon_.socket());
    auto disk = client.tier("disk");
    EXPECT_EQ(disk.state, "degraded");
    EXPECT_NE(disk.reason.find(file() + why), std::string::npos) << disk.reason;
    auto chain = chain_of(77, 2);
    EXPECT_EQ(client.store(chain), 2U);
    EXPECT_EQ(client.load_and_check(chain), 2U);
  }

  /// Checks that the metric has counted damage of this kind.
  void expect_counted(const std::string& kind) {
    std::string series = "terrace_disk_damage_total{group=\"default\",path=\"" + daemon_.state() +
                         "\",kind=\"" + kind + "\"} ";
    std::string text = test::scrape(port_);
    size_t at = text.find(series);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_NE(text[at + series.size()], '0') << kind;
  }

  uint16_t port_ = test::free_port();
  daemon_under_test daemon_{{.disk_bytes = disk_bytes, .metrics = "127.0.0.1:" + std::to_string(port_)}};
};

TEST_F(Damage, AFileThatIsDeletedAndOneThatComesBack) {
  std::filesystem::rename(file(), daemon_.state() + "/elsewhere");
  expect_degraded(" was deleted while it is open");
  expect_counted("deleted");
  std::filesystem::rename(daemon_.state() + "/elsewhere", file());
  ASSERT_TRUE(daemon_.await_log("the disk tier is back: " + file() + " is the file that was opened again"));
  EXPECT_EQ(tester(daemon_.socket()).tier("disk").state, "ready");
}

TEST_F(Damage, AFileThatIsReplaced) {
  std::string copy = daemon_.state() + "/copy";
  std::filesystem::copy_file(file(), copy);
  std::filesystem::rename(copy, file());
  expect_degraded(" is not the file that was opened");
  expect_counted("replaced");
}

TEST_F(Damage, AFileThatIsTruncatedBeforeAnyRead) {
  ASSERT_EQ(::truncate(file().c_str(), disk_bytes / 2), 0);
  expect_degraded(" was truncated to " + readable_bytes(disk_bytes / 2));
  expect_counted("truncated");
}

TEST_F(Damage, AFileWhoseMetadataIsOverwrittenWhileItIsOpen) {
  overwrite(0, std::string(64 << 10, '\0'));
  expect_degraded(" no longer begins with its superblock");
  expect_counted("overwritten");
}

TEST_F(Damage, ObjectsThatFailTheirChecksum) {
  auto chain = chain_of(1, 8);
  tester(daemon_.socket()).store(chain);
  ASSERT_EQ(daemon_.terminate(), 0);
  for (uint64_t at = 3 * mebibyte; at < disk_bytes; at += object_bytes / 2)
    overwrite(at + 100, "damage");
  daemon_.start();
  ASSERT_TRUE(daemon_.await_log("8 objects found"));
  tester client(daemon_.socket());
  EXPECT_EQ(client.load_and_check(chain), 0U);
  ASSERT_TRUE(daemon_.await_log("damaged ("));
  EXPECT_NE(client.tier("disk").notice.find("damaged objects were found"), std::string::npos);
  expect_counted("object");
  for (const digest& chunk : chain)
    client.load_and_check({chunk});
  EXPECT_EQ(daemon_.terminate(), 0);
  size_t lines = 0;
  for (size_t at = 0; (at = daemon_.log().find("since the start);", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_EQ(lines, 1U) << "limited in rate\n" << daemon_.log();
}

TEST_F(Damage, ACopyOfTheSuperblock) {
  auto chain = chain_of(1, 8);
  tester(daemon_.socket()).store(chain);
  ASSERT_EQ(daemon_.terminate(), 0);
  overwrite(64, "damage");
  daemon_.start();
  ASSERT_TRUE(daemon_.await_log("8 objects found"));
  ASSERT_TRUE(
      daemon_.await_log(file() + ": one copy of its superblock was damaged and has been rewritten (copy 0"));
  expect_counted("superblock");
  EXPECT_EQ(tester(daemon_.socket()).load_and_check(chain), 8U);
  ASSERT_EQ(daemon_.terminate(), 0);
  daemon_.start();
  ASSERT_TRUE(daemon_.await_log("joined"));
  EXPECT_EQ(daemon_.terminate(), 0);
  EXPECT_EQ(daemon_.log().find("superblock"), std::string::npos) << daemon_.log();
}

} // namespace damage_test
} // namespace terrace::e2e
